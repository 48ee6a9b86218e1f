package disk

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// values are attributes in the form in which the kernel takes them.
var values = map[string]string{
	"user.note":    "by hand",
	"user.empty":   "",
	attrLabel:      "system_u:object_r:etc_t:s0\x00",
	attrCapability: unhex("0100000200200000000000000000000000000000"), // cap_net_raw=ep
	"trusted.book": "1",
	// user::rw-, user:12345:rw-, group::r--, mask::rw-, other::r--
	attrACL: unhex("02000000" + "01000600ffffffff" + "0200060039300000" + "04000400ffffffff" + "10000600ffffffff" + "20000400ffffffff"),
}

func unhex(s string) string {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// attributed is a root below a folder whose file system has all of them.
func attributed(t *testing.T) *Root {
	t.Helper()
	r, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if os.Geteuid() != 0 {
		t.Skip("only root may set labels and capabilities")
	}
	p := filepath.Join(r.Dir(), "probe")
	if err := os.WriteFile(p, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"user.note", attrLabel, attrCapability, attrACL} {
		if err := unix.Setxattr(p, name, []byte(values[name]), 0); errors.Is(err, unix.ENOTSUP) {
			t.Skipf("the file system of %s has no %s", r.Dir(), name)
		}
	}
	return r
}

func (r *Root) give(t *testing.T, p string, names ...string) {
	t.Helper()
	for _, n := range names {
		if err := unix.Setxattr(r.Dir()+p, n, []byte(values[n]), 0); err != nil {
			t.Fatalf("%s: %v", n, err)
		}
	}
}

func (r *Root) has(t *testing.T, p string, want ...string) {
	t.Helper()
	for name, value := range values {
		buf := make([]byte, 1000)
		n, err := unix.Getxattr(r.Dir()+p, name, buf)
		there := err == nil
		wanted := strings.Contains(" "+strings.Join(want, " ")+" ", " "+name+" ")
		if there != wanted || there && name != attrACL && string(buf[:n]) != value {
			t.Errorf("%s: %s is %q (%v), wanted: %v", p, name, buf[:max(n, 0)], err, wanted)
		}
	}
}

func TestReplacedFileKeepsWhatIsOfThePlace(t *testing.T) {
	r := attributed(t)
	old := Meta{Mode: 0o644, UID: -1, GID: -1}
	if err := r.WriteFile("/f", []byte("old"), old); err != nil {
		t.Fatal(err)
	}
	r.has(t, "/f")
	r.give(t, "/f", "user.note", "user.empty", attrLabel, attrCapability, "trusted.book", attrACL)
	if err := r.WriteFile("/f", []byte("new"), Meta{Mode: 0o640, UID: 12, GID: 13}); err != nil {
		t.Fatal(err)
	}
	r.has(t, "/f", "user.note", "user.empty", attrLabel, attrACL)
	info, err := r.Lstat("/f")
	if err != nil || MetaOf(info) != (Meta{Mode: 0o640, UID: 12, GID: 13}) {
		t.Errorf("%+v, %v", info, err)
	}
	// The mode says what an access list gives at most: of rw- stays r--.
	buf := make([]byte, 100)
	if n, err := unix.Getxattr(r.Dir()+"/f", attrACL, buf); err != nil || !strings.Contains(string(buf[:n]), unhex("10000400ffffffff")) {
		t.Errorf("the mask of the list: %x, %v", buf[:max(n, 0)], err)
	}
	if err := r.WriteFile("/g", nil, old); err != nil {
		t.Fatal(err)
	}
	r.has(t, "/g")
}

// A folder's default list is for files that are new in it.
func TestReplacedFileInheritsNoList(t *testing.T) {
	r := attributed(t)
	if err := r.WriteFile("/f", []byte("old"), Meta{Mode: 0o644, UID: -1, GID: -1}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(r.Dir(), "system.posix_acl_default", []byte(values[attrACL]), 0); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"/f", "/new"} {
		if err := r.WriteFile(p, []byte("new"), Meta{Mode: 0o600, UID: -1, GID: -1}); err != nil {
			t.Fatal(err)
		}
	}
	r.has(t, "/f")
	r.has(t, "/new", attrACL)
}

func TestFileIsPutBackWithAllThatWasItsOwn(t *testing.T) {
	r := attributed(t)
	meta := Meta{Mode: 0o755, UID: 12, GID: 13}
	for _, p := range []string{"/f", "/copy"} {
		if err := r.WriteFile(p, []byte("old"), meta); err != nil {
			t.Fatal(err)
		}
	}
	r.give(t, "/f", "user.note", attrLabel, attrCapability, "trusted.book")
	attrs, err := r.Attributes("/f")
	if err != nil || !attrs.Capable() {
		t.Fatalf("%v, %v", attrs, err)
	}
	if err := r.WriteFile("/f", []byte("new"), Meta{Mode: 0o600, UID: 0, GID: 0}); err != nil {
		t.Fatal(err)
	}
	r.give(t, "/f", "user.empty")
	meta.Attributes = &attrs
	if _, err := r.CopyFile("/copy", "/f", "", meta); err != nil {
		t.Fatal(err)
	}
	r.has(t, "/f", "user.note", attrLabel, attrCapability)
	if a, err := r.Attributes("/copy"); err != nil || len(a) != 0 {
		t.Errorf("of a plain file: %v, %v", a, err)
	}
	if _, err := r.Attributes("/none"); err != nil {
		t.Errorf("of no file: %v", err)
	}
}

func TestAttributesThatCannotBeSet(t *testing.T) {
	r := attributed(t)
	if err := r.WriteFile("/f", []byte("old"), Meta{Mode: 0o644, UID: -1, GID: -1}); err != nil {
		t.Fatal(err)
	}
	r.give(t, "/f", "user.note")
	r.step = func(op, _ string) error {
		if op == "setxattr" {
			return unix.ENOSPC
		}
		return nil
	}
	if err := r.WriteFile("/f", []byte("new"), Meta{Mode: 0o644, UID: -1, GID: -1}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v", err)
	}
	if data, err := r.ReadFile("/f", 0); string(data) != "old" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	entries, err := os.ReadDir(r.Dir())
	if err != nil || len(entries) != 2 { // f and the probe
		t.Errorf("left: %v, %v", entries, err)
	}
}
