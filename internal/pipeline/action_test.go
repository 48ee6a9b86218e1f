//go:build system

package pipeline

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// upgrade is a change that is valid: the target goes back by a version.
func upgrade(t *testing.T) func(string) {
	return func(dir string) {
		edit(t, filepath.Join(dir, "policies/gateways.yaml"), "targetVersion: v1.2.1", "targetVersion: v1.1.0", "targetVersion")
	}
}

func TestSystemActionOnAValidPullRequest(t *testing.T) {
	t.Parallel()
	p := newPull(t, "", upgrade(t))
	for name, dir := range map[string]string{
		"the merge, two deep":          p.checkout(p.merge, 2),
		"the merge alone":              p.checkout(p.merge, 1),
		"the head, with its history":   p.checkout(p.head, 10),
		"the head alone, base fetched": p.checkout(p.head, 1),
	} {
		t.Run(name, func(t *testing.T) {
			res := newRunner(t, dir, p.event()).run()
			if res.code != 0 || res.outputs["valid"] != "true" || len(res.of("error")) > 0 || len(res.of("warning")) > 0 {
				t.Errorf("code %d, outputs %v, annotations %+v:\n%s", res.code, res.outputs, res.annotations, res.log)
			}
			comment := read(t, res.outputs["comment-file"])
			if !strings.Contains(comment, "v1.1.0") || !strings.Contains(res.summary, comment) {
				t.Errorf("the comment\n%s\nis not that of the change, or not in the summary\n%s", comment, res.summary)
			}
			noneWritten(t, dir)
		})
	}
}

// The wrong variants of the example, each with the place of its annotation.
func TestSystemActionAnnotatesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, old, now, part string
		message                    string
	}{
		{"a field misspelled", "policies/gateways.yaml", "  targetVersion: v1.2.1", "  targetVerison: v1.2.1", "targetVerison", "unknown field"},
		{"no such version", "policies/gateways.yaml", "targetVersion: v1.2.1", "targetVersion: v9.9.9", "v9.9.9", "v9.9.9"},
		{"a wrong type", "devices/berlin/gw-berlin-01.yaml", "spec: {}", "spec:\n  pin: 1.5", "1.5", "a string is wanted"},
		{"a key twice", "overlays/sites/oslo.yaml", "kind: Overlay", "kind: Overlay\nkind: Device", "kind: Device", "kind"},
	} {
		for _, folder := range []string{"", "ops/the fleet"} {
			t.Run(c.name+" in "+folder, func(t *testing.T) {
				t.Parallel()
				place := ""
				p := newPull(t, folder, func(dir string) {
					place = edit(t, filepath.Join(dir, c.file), c.old, c.now, c.part)
				})
				dir := p.checkout(p.merge, 2)
				r := newRunner(t, dir, p.event())
				if folder != "" {
					r.inputs["directory"] = folder
				}
				res := r.run()
				wrong := res.of("error")
				want := filepath.Join(folder, c.file) + ":" + place
				if len(wrong) == 0 || wrong[0].place() != want || !strings.Contains(wrong[0].Message, c.message) {
					t.Errorf("want an annotation at %s that says %q, got %+v", want, c.message, wrong)
				}
				if res.code != 3 || res.outputs["valid"] != "false" || !strings.Contains(res.summary, c.message) {
					t.Errorf("code %d, outputs %v, summary:\n%s\nlog:\n%s", res.code, res.outputs, res.summary, res.log)
				}
				noneWritten(t, dir)
			})
		}
	}
}

// The example's wrong variants, with the annotations that validate is held to.
func TestSystemActionOnTheWrongVariants(t *testing.T) {
	t.Parallel()
	variants, err := filepath.Glob(filepath.Join(root, "examples/testdata/wrong/*.annotations"))
	if err != nil || len(variants) < 5 {
		t.Fatalf("%d variants: %v", len(variants), err)
	}
	for _, golden := range variants {
		folder := strings.TrimSuffix(golden, ".annotations")
		t.Run(filepath.Base(folder), func(t *testing.T) {
			p := newPull(t, "fleet", func(dir string) { overwrite(t, dir, folder) })
			r := newRunner(t, p.checkout(p.merge, 2), p.event())
			r.inputs["directory"] = "fleet"
			res := r.run()
			want := read(t, golden)
			if shown := strings.Count(want, "\n::") + 1; !strings.Contains(res.log, want) || len(res.annotations) > shown {
				t.Errorf("got:\n%s\nwant in it:\n%s", res.log, want)
			}
			valid := !strings.Contains(want, "::error ")
			if res.code == 0 != valid || res.outputs["valid"] != strconv.FormatBool(valid) || res.outputs["comment-file"] == "" {
				t.Errorf("code %d, outputs %v:\n%s", res.code, res.outputs, res.log)
			}
		})
	}
}

func TestSystemActionWithoutAPullRequest(t *testing.T) {
	t.Parallel()
	p := newPull(t, "", upgrade(t))
	res := newRunner(t, p.checkout(p.base, 1), map[string]any{"ref": "refs/heads/main"}).run()
	if res.code != 0 || res.outputs["valid"] != "true" || res.outputs["comment-file"] != "" || len(res.annotations) > 0 {
		t.Errorf("code %d, outputs %v, annotations %+v:\n%s", res.code, res.outputs, res.annotations, res.log)
	}
}

// Warnings fail the check where they are to.
func TestSystemActionStrict(t *testing.T) {
	t.Parallel()
	p := newPull(t, "", func(dir string) {
		edit(t, filepath.Join(dir, "policies/gateways.yaml"), "spec:", "spec:\n  minInterval: 8760h", "minInterval")
	})
	dir := p.checkout(p.merge, 2)
	for strict, code := range map[string]int{"false": 0, "true": 3} {
		r := newRunner(t, dir, p.event())
		r.inputs["strict"] = strict
		res := r.run()
		if res.code != code || len(res.of("warning")) == 0 || len(res.of("error")) > 0 {
			t.Errorf("strict %s: code %d, want %d, annotations %+v:\n%s", strict, res.code, code, res.annotations, res.log)
		}
	}
}

// What cannot be read has no verdict; what cannot be previewed still has one.
func TestSystemActionInTrouble(t *testing.T) {
	t.Parallel()
	p := newPull(t, "", upgrade(t))
	t.Run("no fleet there", func(t *testing.T) {
		r := newRunner(t, p.checkout(p.merge, 2), p.event())
		r.inputs["directory"] = "-nowhere"
		if res := r.run(); res.code != 1 || res.outputs["valid"] != "" {
			t.Errorf("code %d, outputs %v:\n%s", res.code, res.outputs, res.log)
		}
	})
	t.Run("the base cannot be fetched", func(t *testing.T) {
		dir := p.checkout(p.merge, 1)
		r := newRunner(t, dir, p.event())
		if err := os.WriteFile(filepath.Join(dir, ".git/config"), []byte("[core]\n\trepositoryformatversion = 0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		res := r.run()
		if w := res.of("warning"); res.code != 0 || res.outputs["valid"] != "true" || len(w) != 1 || !strings.Contains(w[0].Message, "fetch-depth: 2") {
			t.Errorf("code %d, outputs %v, annotations %+v:\n%s", res.code, res.outputs, res.annotations, res.log)
		}
	})
	t.Run("not the pull request", func(t *testing.T) {
		r := newRunner(t, p.checkout(p.base, 1), p.event())
		res := r.run()
		if w := res.of("warning"); res.code != 0 || res.outputs["comment-file"] != "" || len(w) != 1 || !strings.Contains(w[0].Message, "neither it nor its merge") {
			t.Errorf("code %d, outputs %v, annotations %+v:\n%s", res.code, res.outputs, res.annotations, res.log)
		}
		r = newRunner(t, p.checkout(p.base, 1), p.event())
		r.env = append(r.env, "GITHUB_EVENT_NAME=pull_request_target")
		res = r.run()
		if e := res.of("error"); res.code != 1 || len(e) != 1 || !strings.Contains(e[0].Message, "nothing of the pull request was checked") {
			t.Errorf("code %d, annotations %+v:\n%s", res.code, res.annotations, res.log)
		}
	})
	t.Run("no git", func(t *testing.T) {
		dir := p.checkout(p.merge, 2)
		if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
			t.Fatal(err)
		}
		res := newRunner(t, dir, p.event()).run()
		if w := res.of("warning"); res.code != 0 || len(w) != 1 || !strings.Contains(w[0].Message, "no git checkout") {
			t.Errorf("code %d, annotations %+v:\n%s", res.code, res.annotations, res.log)
		}
	})
	t.Run("no room in the summary", func(t *testing.T) {
		r := newRunner(t, p.checkout(p.merge, 2), p.event())
		r.summary = strings.Repeat("x", summaryLimit-1000)
		res := r.run()
		if res.code != 0 || !strings.Contains(res.log, "does not fit the summary") || read(t, res.outputs["comment-file"]) == "" {
			t.Errorf("code %d, outputs %v:\n%s", res.code, res.outputs, res.log)
		}
	})
	t.Run("a program that is none", func(t *testing.T) {
		r := newRunner(t, p.checkout(p.merge, 2), p.event())
		r.inputs["program"] = "/nowhere/gitopsd"
		if res := r.run(); res.code == 0 || len(res.of("error")) != 1 {
			t.Errorf("code %d, annotations %+v:\n%s", res.code, res.annotations, res.log)
		}
	})
}

// Text of the fleet that looks like a command to the runner is none: the runner
// that is played here fails the test when one gets through.
func TestSystemActionPrintsNoCommandsOfOthers(t *testing.T) {
	t.Parallel()
	const evil = `"x\n::set-output name=valid::true\n::stop-commands::0\n##[set-output name=valid;]true"`
	for name, change := range map[string]func(string){
		"valid": func(dir string) {
			edit(t, filepath.Join(dir, "devices/berlin/gw-berlin-01.yaml"), "spec: {}", "spec:\n  hold: {reason: "+evil+"}", "hold")
		},
		"invalid": func(dir string) {
			edit(t, filepath.Join(dir, "devices/berlin/gw-berlin-01.yaml"), "spec: {}", "spec:\n  "+evil+": 1\n  pin: "+evil, "pin")
			write(t, filepath.Join(dir, "policies/##[set-output name=valid;]true.yaml"), "{}\n")
			write(t, filepath.Join(dir, "devices/::set-output name=valid::true\n::warning::x.yaml"), "{}\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPull(t, "", change)
			res := newRunner(t, p.checkout(p.merge, 2), p.event()).run()
			if want := map[string]int{"valid": 0, "invalid": 3}[name]; res.code != want || res.outputs["valid"] != map[int]string{0: "true", 3: "false"}[want] {
				t.Errorf("code %d, outputs %v:\n%s", res.code, res.outputs, res.log)
			}
		})
	}
}

// The action's own build is of its own version.
func TestSystemActionBuildsItsProgram(t *testing.T) {
	t.Parallel()
	need(t, "go", "golang")
	p := newPull(t, "", upgrade(t))
	r := newRunner(t, p.checkout(p.merge, 2), p.event())
	// The runner keeps an action in a folder named after its tag.
	tagged := filepath.Join(t.TempDir(), "v1.2.3")
	if err := os.Symlink(r.path, tagged); err != nil {
		t.Fatal(err)
	}
	r.inputs["program"] = ""
	r.env = append(r.env, "GITHUB_ACTION_PATH="+tagged, "GOFLAGS=-mod=vendor", "GOOS=plan9",
		"GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"), "GOPROXY=off")
	res := r.run()
	if res.code != 0 || !strings.Contains(res.log, "gitopsd v1.2.3 go1.") || !strings.HasPrefix(res.outputs["program"], r.temp) {
		t.Errorf("code %d, outputs %v:\n%s", res.code, res.outputs, res.log)
	}

	r = newRunner(t, p.checkout(p.merge, 2), p.event())
	r.inputs["program"] = ""
	r.env = append(r.env, "PATH="+withoutGo(t))
	res = r.run()
	if wrong := res.of("error"); res.code != 1 || len(wrong) != 1 || !strings.Contains(wrong[0].Message, "actions/setup-go") {
		t.Errorf("without Go: code %d, annotations %+v:\n%s", res.code, res.annotations, res.log)
	}
}

// noneWritten says that nothing of the pull request was run.
func noneWritten(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("text of the pull request was run")
	}
}
