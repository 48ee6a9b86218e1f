package hooks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/schema"
)

// localRoot has files by path; a content that begins with "->" is a symlink.
func localRoot(t *testing.T, files map[string]string) *disk.Root {
	t.Helper()
	dir := t.TempDir()
	for p, content := range files {
		at := filepath.Join(dir, p)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		if to, isLink := strings.CutPrefix(content, "->"); err == nil && isLink {
			err = os.Symlink(to, at)
		} else if err == nil {
			err = os.WriteFile(at, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := disk.Open(dir, disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

const goodHook = "run: [\"true\"]\n"

func TestLocal_WhatIsReadAndWhatIsNot(t *testing.T) {
	const own = "/etc/gitopsd/hooks.d/afterUpdating/"
	r := localRoot(t, map[string]string{
		own + "a.yaml":                             goodHook,
		own + "link.yaml":                          "->/opt/hooks/link.yaml",
		"/opt/hooks/link.yaml":                     goodHook,
		own + "README":                             "not a hook",
		own + ".a.yaml.swp":                        "no",
		own + ".hidden.yaml":                       "no",
		own + "a.yaml~":                            "no",
		own + "a.yaml.rpmsave":                     "no",
		"/etc/gitopsd/hooks.d/README":              "no",
		"/usr/lib/gitopsd/hooks.d/beforeRebooting": "->/opt/vendor",
		"/opt/vendor/v.yaml":                       goodHook,
	})
	h, err := Local(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(Ordered(h.AfterUpdating), " "); got != own+"a.yaml "+own+"link.yaml" {
		t.Errorf("after: %s", got)
	}
	if got := strings.Join(Ordered(h.BeforeRebooting), " "); got != "/usr/lib/gitopsd/hooks.d/beforeRebooting/v.yaml" {
		t.Errorf("before the reboot: %s", got)
	}
	if h, err := Local(localRoot(t, nil)); err != nil || len(h.AfterUpdating) != 0 {
		t.Errorf("an empty device: %v, %v", h, err)
	}
}

func TestLocal_WhatIsWrongIsToldAndTheRestIsRead(t *testing.T) {
	const own = "/etc/gitopsd/hooks.d/afterUpdating/"
	many := map[string]string{}
	for i := range maxLocal + 1 {
		many["/etc/gitopsd/hooks.d/afterUpdating/"+strings.Repeat("x", i+1)] = ""
	}
	outside := filepath.Join(t.TempDir(), "outside.yaml")
	if err := os.WriteFile(outside, []byte(goodHook), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files map[string]string
		mode  map[string]os.FileMode
		owner map[string]int
		want  []string
	}{
		"field":       {map[string]string{own + "x.yaml": "run: [a]\norder: x\n"}, nil, nil, []string{own + "x.yaml", "line 2"}},
		"large":       {map[string]string{own + "x.yaml": "run: [a]\n#" + strings.Repeat("x", maxLocalFile)}, nil, nil, []string{own + "x.yaml", "larger"}},
		"ending":      {map[string]string{own + "x.yml": goodHook}, nil, nil, []string{own + "x.yml", "rename"}},
		"point":       {map[string]string{"/etc/gitopsd/hooks.d/afterUpdate/x.yaml": goodHook}, nil, nil, []string{"hooks.d/afterUpdate", "no point"}},
		"folder":      {map[string]string{own + "x.yaml/y": goodHook}, nil, nil, []string{own + "x.yaml", "not a regular file"}},
		"no folder":   {map[string]string{"/etc/gitopsd/hooks.d": goodHook}, nil, nil, []string{"/etc/gitopsd/hooks.d", "not a directory"}},
		"dangling":    {map[string]string{own + "x.yaml": "->/nowhere"}, nil, nil, []string{own + "x.yaml", "no such file"}},
		"outside":     {map[string]string{own + "x.yaml": "->" + outside}, nil, nil, []string{own + "x.yaml", "no such file"}},
		"loop":        {map[string]string{own + "x.yaml": "->x.yaml"}, nil, nil, []string{own + "x.yaml", "symbolic links"}},
		"many":        {many, nil, nil, []string{"hooks.d/afterUpdating", "201 entries"}},
		"group":       {map[string]string{own + "x.yaml": goodHook}, map[string]os.FileMode{own + "x.yaml": 0o664}, nil, []string{own + "x.yaml", "0664"}},
		"others":      {map[string]string{own + "x.yaml": goodHook}, map[string]os.FileMode{own: 0o777}, nil, []string{"afterUpdating", "0777"}},
		"parent":      {map[string]string{own + "x.yaml": goodHook}, map[string]os.FileMode{"/etc/gitopsd": 0o777}, nil, []string{"/etc/gitopsd has", "0777"}},
		"link's home": {map[string]string{own + "x.yaml": "->/opt/w/x.yaml", "/opt/w/x.yaml": goodHook}, map[string]os.FileMode{"/opt/w": 0o777}, nil, []string{"/opt/w has"}},
		"owner":       {map[string]string{own + "x.yaml": goodHook}, nil, map[string]int{own + "x.yaml": 12345}, []string{"user 12345"}},
		"folder's":    {map[string]string{own + "x.yaml": goodHook}, nil, map[string]int{"/etc/gitopsd/hooks.d": 12345}, []string{"hooks.d belongs to user 12345"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.owner != nil && os.Geteuid() != 0 {
				t.Skip("only root can give files away")
			}
			c.files["/usr/lib/gitopsd/hooks.d/afterRebooting/good.yaml"] = goodHook
			r := localRoot(t, c.files)
			for p, m := range c.mode {
				if err := os.Chmod(filepath.Join(r.Dir(), p), m); err != nil {
					t.Fatal(err)
				}
			}
			for p, uid := range c.owner {
				if err := os.Chown(filepath.Join(r.Dir(), p), uid, -1); err != nil {
					t.Fatal(err)
				}
			}
			h, err := Local(r)
			if class(err) != schema.ClassPermanent {
				t.Fatalf("%v", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not told: %v", w, err)
				}
			}
			if len(h.AfterRebooting) != 1 {
				t.Errorf("the good one: %v", h.AfterRebooting)
			}
			for at := range h.AfterUpdating {
				t.Errorf("%s is read", at)
			}
		})
	}
}
