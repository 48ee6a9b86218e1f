package schema

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// Sources that try to leave the repository, or that are not what they seem.
func TestB95_SourcePaths(t *testing.T) {
	release := func(source string) *fakeSource {
		return repoOf(ruleFleet).
			with("releases/gateways/v1.5.0.yaml", fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: {files: {/etc/motd: {source: %s}}}\n", source)).
			with("files/motd", "hello\n").with("releases/gateways/motd", "hello\n").with(".git/config", "secret\n")
	}
	for source, want := range map[string]string{
		"files/motd":               "",
		"./motd":                   "",
		"releases/gateways/motd":   "",
		"../../../etc/shadow":      ruleSourcePath,
		"/etc/shadow":              ruleSourcePath,
		"files/../../x":            ruleSourcePath,
		"files/../files/motd":      ruleSourcePath,
		"./../gateways/motd":       ruleSourcePath,
		"././motd":                 ruleSourcePath,
		"files//motd":              ruleSourcePath,
		"files/./motd":             ruleSourcePath,
		"files/":                   ruleSourcePath,
		"./":                       ruleSourcePath,
		".":                        ruleSourcePath,
		"..":                       ruleSourcePath,
		`'C:\x'`:                   ruleSourcePath,
		`'files\motd'`:             ruleSourcePath,
		`"files/mo\0td"`:           ruleSourcePath,
		`"files/mo\ntd"`:           ruleSourcePath,
		`"files/mo\u202etd"`:       ruleSourcePath,
		".git/config":              ruleSourcePath,
		"files/.GIT/config":        ruleSourcePath,
		"files":                    ruleSourceMissing,
		"motd":                     ruleSourceMissing,
		"files/motd/x":             ruleSourceMissing,
		"https://example.com/motd": ruleSourcePath,
		strings.Repeat("a/", 300):  ruleSourcePath,
		strings.Repeat("a", 1025):  ruleSize,
	} {
		f := load(t, release(source))
		got, errs := "", 0
		for _, p := range f.Problems {
			if p.Severity == SeverityError {
				got = p.Rule
				errs++
			}
		}
		if got != want || errs > 1 && want != ruleSize {
			t.Errorf("source %.60s: got %q, want %q\n%s", source, got, want, lines(f.Problems))
		}
		if m := f.Member("gw-1"); (m.Rendered == nil) != (want != "") {
			t.Errorf("source %.60s: rendered %t", source, m.Rendered != nil)
		}
	}
}

// Nothing is ever read through a symlink or out of a submodule.
func TestB123_SymlinksAreNotRead(t *testing.T) {
	release := "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: {files: {/etc/motd: {source: files/x/motd}}}\n"
	for _, c := range []struct {
		path string
		mode EntryMode
		want string
	}{
		{"files/x/motd", ModeSymlink, ruleSourceKind},
		{"files/x/motd", ModeSubmodule, ruleSourceKind},
		{"files/x", ModeSymlink, ruleSourceKind},
		{"files", ModeSubmodule, ruleSourceKind},
		{"devices/berlin", ModeSymlink, ruleNotRegular},
		{"devices/berlin.yaml", ModeSymlink, ruleNotRegular},
		{"policies/sub", ModeSubmodule, ruleNotRegular},
		{"overlays", ModeSymlink, ruleNotRegular},
		{"devices", ModeSubmodule, ruleNotRegular},
	} {
		src := repoOf(ruleFleet)
		if strings.HasPrefix(c.path, "files") {
			src = src.with("releases/gateways/v1.5.0.yaml", release)
		}
		src = src.with(c.path, "/proc/self/environ")
		src.modes[c.path] = c.mode
		if c.path == "devices" {
			delete(src.files, "devices/gw-1.yaml")
		}
		src.fail = c.path
		f, err := new(Loader).Load(src)
		if err != nil {
			t.Errorf("%s: it was read: %v", c.path, err)
			continue
		}
		if !strings.Contains(lines(f.Problems), " error "+c.want+": ") {
			t.Errorf("%s: want %s, got:\n%s", c.path, c.want, lines(f.Problems))
		}
	}
}

// A pointer of Git LFS would be deployed as if it were the file.
func TestB27_LFSPointer(t *testing.T) {
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 123\n"
	release := "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: {files: {/opt/a: {source: files/a}, /opt/b: {source: files/b, template: true}}}\n"
	f := load(t, repoOf(ruleFleet).with("releases/gateways/v1.5.0.yaml", release).with("files/a", pointer).with("files/b", pointer))
	if got := strings.Count(lines(f.Problems), ruleLFS); got != 2 || f.Valid() || f.Member("gw-1").Rendered != nil {
		t.Errorf("%d problems:\n%s", got, lines(f.Problems))
	}
}

func TestDevicePaths(t *testing.T) {
	for p, want := range map[string]string{
		"/etc/motd": "", "/usr/lib/systemd/x.service": "", `/etc/systemd/system/dev-disk\x2d1.swap`: "", "/run/x": "", "/etc/gitopsd2/x": "", "/процесс": "",
		"/": ruleProtected, "/proc/x": ruleProtected, "/proc": ruleProtected, "/sys/a": ruleProtected, "/dev/null": ruleProtected,
		"/run/gitopsd/busy": ruleProtected, "/var/lib/gitopsd": ruleProtected, "/var/lib/gitopsd/x": ruleProtected, "/etc/gitopsd/agent.yaml": ruleProtected,
		"/usr/lib/gitopsd/hooks.d/x": ruleProtected, "/etc": ruleProtected, "/var/lib": ruleProtected, "/run": ruleProtected,
		"etc/motd": ruleDevicePath, "": ruleDevicePath, "/etc/": ruleDevicePath, "/etc//motd": ruleDevicePath, "/etc/../proc/x": ruleDevicePath, "/./etc": ruleDevicePath,
		"//proc/x": ruleDevicePath, "/a\x00b": ruleDevicePath, "/a\nb": ruleDevicePath, "/" + strings.Repeat("a", 256): ruleDevicePath, strings.Repeat("/a", 2100): ruleDevicePath,
	} {
		if rule, msg, _ := devicePath(p, true); rule != want {
			t.Errorf("%.60q: got %s (%s), want %q", p, rule, msg, want)
		}
	}
	for _, p := range []string{"/etc", "/var/lib", "/run"} {
		if rule, _, _ := devicePath(p, false); rule != "" {
			t.Errorf("the directory %s is refused: %s", p, rule)
		}
	}
}

// Paths of a hostile tree end as problems, not in messages as they are.
func TestHostilePaths(t *testing.T) {
	for _, p := range []string{"devices/../../etc/passwd.yaml", "devices/a\nb.yaml", "devices/\xff.yaml", "devices/a\x1b[31m.yaml", "devices/.git/x.yaml",
		"devices//x.yaml", "policies/\u202ex.yaml", "releases/a\x00b/v1.0.0.yaml", "devices/" + strings.Repeat("a/", 3000) + "x.yaml", "overlays/./x.yaml"} {
		f := load(t, repoOf(ruleFleet).with(p, "x: y\n"))
		if f.Valid() {
			t.Errorf("%.60q is accepted", p)
		}
		for _, prob := range f.Problems {
			if !utf8.ValidString(prob.File) || strings.ContainsAny(prob.File+prob.Message, "\n\x1b\x00") || len(prob.File) > 300 {
				t.Errorf("%.60q: %+v", p, prob)
			}
		}
		if m := f.Member("gw-1"); m == nil || m.Rendered == nil {
			t.Errorf("%.60q hides another device", p)
		}
	}
}

// Documents beside which payloads lie, and folders that are payloads.
func TestLayout(t *testing.T) {
	for p, want := range map[string]struct {
		kind       Kind
		name, line string
		rule       string
	}{
		"policies/a.yaml":                  {kind: KindPolicy, name: "a"},
		"policies/a/b.yaml":                {rule: ruleMisplaced},
		"policies/a.yml":                   {rule: ruleExtension},
		"releases/l/v1.0.0.yaml":           {kind: KindRelease, name: "v1.0.0", line: "l"},
		"releases/l/v1.0.0/release.yaml":   {kind: KindRelease, name: "v1.0.0", line: "l"},
		"releases/l/v1.0.0/other.yaml":     {},
		"releases/l/v1.0.0/release.yml":    {rule: ruleExtension},
		"releases/l/v1.0.0.yml":            {rule: ruleExtension},
		"releases/v1.0.0.yaml":             {rule: ruleMisplaced},
		"releases/l/v1.0.0/a/release.yaml": {},
		"overlays/a/b/c.yaml":              {kind: KindOverlay, name: "c"},
		"overlays/files/c.yaml":            {},
		"devices/a/files/b/c.yaml":         {},
		"devices/a/files.yaml":             {kind: KindDevice, name: "files"},
		"devices/a/b.YAML":                 {rule: ruleExtension},
		"devices/a/b.json":                 {rule: ruleExtension},
		"devices/a/b.yaml~":                {rule: ruleStrayFile},
		"devices/README.md":                {},
		"devices/.gitkeep":                 {},
		"files/a.yaml":                     {},
		"README.md":                        {},
		"fleet.yaml":                       {kind: KindFleet, name: "fleet"},
		"fleet.yml":                        {rule: ruleExtension},
		"Fleet.yaml":                       {rule: ruleExtension},
		"brake.yaml":                       {rule: ruleMisplaced},
		"fleet.txt":                        {},
		"docs/fleet.yaml":                  {},
		"device/a.yaml":                    {rule: ruleMisplaced},
		"Policies/a.yaml":                  {rule: ruleMisplaced},
		".github/workflows/check.yaml":     {},
		"docs/a.yaml":                      {},
	} {
		got := place(p)
		if got.kind != want.kind || got.kind != "" && (got.name != want.name || got.line != want.line) || got.rule != want.rule {
			t.Errorf("%s: got %+v, want %+v", p, got, want)
		}
	}
}

// Whatever templates do, a Load ends, and what they render to is bounded.
func TestTemplatesAreBounded(t *testing.T) {
	big := strings.Repeat("x", maxTemplate-100)
	src := repoOf(ruleFleet).
		with("releases/gateways/v1.5.0.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: {files: {/opt/a: {source: files/a, template: true}}}\n").
		with("files/a", "{{ .device.name }}"+big)
	for i := range 600 {
		id := fmt.Sprintf("n-%d", i)
		src.files["devices/"+id+".yaml"] = fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: %s, labels: {role: gateway}}\n", id)
	}
	if testing.Short() {
		t.Skip("renders half a GiB")
	}
	f := load(t, src)
	if f.Valid() || !strings.Contains(lines(f.Problems), "more than 512 MiB") {
		t.Errorf("problems:\n%s", clip2(lines(f.Problems)))
	}
}
