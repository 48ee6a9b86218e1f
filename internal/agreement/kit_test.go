package agreement

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// Where make installs what is compared with.
const (
	kubeconformGlob = "../../bin/tools/kubeconform-v*"
	yamlServer      = "../../bin/tools/yaml-language-server/node_modules/yaml-language-server/bin/yaml-language-server"
)

// kubeconform is the pinned program.
func kubeconform(t testing.TB) string {
	t.Helper()
	found, err := filepath.Glob(kubeconformGlob)
	if err != nil || len(found) == 0 {
		missing(t, kubeconformGlob)
	}
	full, err := filepath.Abs(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	return full
}

// missing skips a test where that is allowed.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("GITOPSD_NO_SKIP") != "" {
		t.Fatalf("%s is needed here: make test-system installs it", what)
	}
	t.Skipf("%s is missing: make test-system installs it", what)
}

// writeSchemas writes the schema of every kind below dir, where and as
// gitopsd schema --all .gitopsd/schemas does.
func writeSchemas(t testing.TB, dir string) (location string) {
	t.Helper()
	at := filepath.Join(dir, ".gitopsd", "schemas")
	for _, k := range schema.Kinds() {
		text, err := schema.JSONSchema(k)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(at, strings.ToLower(string(k))+".json"), text)
	}
	return at
}

func writeFile(t testing.TB, name string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// gitopsd builds the program as it is packed: without a C library.
func gitopsd(t testing.TB) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "gitopsd")
	build := exec.Command("go", "build", "-trimpath", "-o", exe, "github.com/gitopsd/gitopsd/cmd/gitopsd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build gitopsd: %v\n%s", err, out)
	}
	return exe
}
