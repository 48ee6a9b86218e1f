package sweep

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// All devices of a rollout are told of the commit that made it one, also those
// that wait while others come.
func TestBecauseOfARollout(t *testing.T) {
	w, d := done(t, 2)
	for _, v := range []string{"v1.1.0", "v1.2.0"} {
		commit := w.change("gateways: "+v, "targetVersion", v)
		w.until(d, "one on "+v, func() bool { return w.on(v) == 1 })
		w.push("nothing that matters", map[string]string{"README.md": v})
		w.change("nothing that the devices get", "updateTimeout", "31m")
		w.until(d, "everybody on "+v, func() bool { return w.on(v) == 2 })
		for _, id := range w.ids() {
			w.wantBecause(id, commit)
		}
	}
}

// Who is asked at three in the morning is who made the change that counts:
// of the device's own part, or that of going back.
func TestBecauseOfOneDevice(t *testing.T) {
	w, d := done(t, 3)
	first := w.because("gw-01").Commit
	own := w.push("another serial number", map[string]string{"devices/berlin/gw-02.yaml": otherSerial("gw-02")})
	w.until(d, "gw-02 has its own", func() bool { return w.assigned(2, "gw-02") && w.on("v1.0.0") == 3 })
	w.wantBecause("gw-02", own)
	w.wantBecause("gw-01", first)

	// Two go to another version and back; gw-01 stays where it was.
	w.push("gw-01 stays", map[string]string{"devices/berlin/gw-01.yaml": deviceYAML("gw-01", "  pin: v1.0.0\n")})
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.until(d, "two on v1.1.0", func() bool { return w.on("v1.1.0") == 2 })
	back := w.change("gateways: back", "targetVersion", "v1.0.0", "rollbackFrom", "[v1.1.0]")
	w.until(d, "one is back", func() bool { return w.on("v1.0.0") == 2 })
	w.push("nothing that matters", map[string]string{"README.md": "x"})
	restarted := w.daemon()
	w.until(restarted, "all are back", func() bool { return w.on("v1.0.0") == 3 })
	w.wantBecause("gw-02", back)
	w.wantBecause("gw-03", back)
	w.wantBecause("gw-01", first)
}

// Of several commits that a sweep finds at once, and of those that come while
// devices wait, the newest that changed what a device gets is named, whichever
// file that was in.
func TestBecauseIsTheNewestThatCounts(t *testing.T) {
	overlay := func(order int, text string) string {
		return fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: site}\nspec:\n  order: %d\n  selector: {matchLabels: {role: gateway}}\n  desired: {files: {/etc/site: {content: %q}}}\n", order, text)
	}
	serials := map[string]string{}
	for _, id := range []string{"gw-01", "gw-02", "gw-03"} {
		serials["devices/berlin/"+id+".yaml"] = otherSerial(id)
	}
	for name, change := range map[string]map[string]string{
		"own parts":        serials,
		"an overlay":       {"overlays/site.yaml": overlay(0, "berlin\n")},
		"a payload":        {"files/motd": "welcome back\n"},
		"the same release": {"releases/gateways/v1.0.0.yaml": strings.Replace(releaseYAML("v1.0.0"), "{{.vars", "is {{.vars", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := done(t, 3)
			w.push("it was changed before, too", map[string]string{"devices/berlin/gw-01.yaml": strings.Replace(otherSerial("gw-01"), "other", "an", 1)})
			commit := w.push("what counts", change)
			for i := range 3 {
				w.push("no matter", map[string]string{"README.md": fmt.Sprint(i)})
				w.change("slower", "updateTimeout", fmt.Sprintf("%dm", 31+i))
				w.push("a comment", map[string]string{"releases/gateways/v1.1.0.yaml": releaseYAML("v1.1.0") + fmt.Sprintf("# %d\n", i)})
				w.push("for others", map[string]string{"overlays/other.yaml": strings.NewReplacer("name: site", "name: other", "role: gateway", "role: sensor").Replace(overlay(1, fmt.Sprint(i)))})
				w.until(d, "they are assigned one by one", func() bool {
					n := 0
					for _, id := range w.ids() {
						if w.assigned(2, id) {
							n++
						}
					}
					return n > i
				})
			}
			for _, id := range w.ids() {
				w.wantBecause(id, commit)
			}
		})
	}
}

// Who made the change is named, not who merged it; where a merge brings two
// changes of one device together, it is the merge that made what the device has.
func TestBecauseOfAMerge(t *testing.T) {
	w, d := done(t, 2)
	base := w.repo.ref("refs/heads/main")
	bump := map[string]string{"policies/gateways.yaml": strings.Replace(w.policyYAML(), "v1.0.0", "v1.1.0", 1)}
	made := w.repo.pushOn("topic", base, "gateways: v1.1.0", w.now, bump)
	w.push("another serial number", map[string]string{"devices/berlin/gw-02.yaml": otherSerial("gw-02")})
	merge := w.push("merge", bump)
	w.repo.commits[merge].merged = made
	w.push("nothing that matters", map[string]string{"README.md": "x"})
	w.until(d, "all are on v1.1.0", func() bool { return w.on("v1.1.0") == 2 })
	w.wantBecause("gw-01", made)
	w.wantBecause("gw-02", merge)
}

// Where the commit is not found the one that was swept stands there, in words
// that say so, and nobody is said to have made it.
func TestBecauseIsNotFound(t *testing.T) {
	for name, remote := range map[string]func(*memRemote) Remote{
		"the history is not here": func(m *memRemote) Remote { return &rootless{memRemote: m} },
		"it is too long":          func(m *memRemote) Remote { return &endless{memRemote: m} },
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := done(t, 1)
			d := w.daemon(func(c *Config) { c.Remote = remote(w.remote()) })
			w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
			swept := w.push("nothing that matters", map[string]string{"README.md": "x"})
			w.until(d, "it is on v1.1.0", func() bool { return w.on("v1.1.0") == 1 })
			want := schema.Because{Commit: swept, Subject: schema.BecauseSwept, Policy: "gateways"}
			if got := w.because("gw-01"); *got != want {
				t.Errorf("gw-01 was assigned what it has by %+v, want %+v", *got, want)
			}
		})
	}
}

// Another gitopsd may give a device another spec without a commit.
func TestBecauseOfNoCommit(t *testing.T) {
	w := newWorld(t, 1)
	w.push("the version of gitopsd", map[string]string{"releases/gateways/v0.1.0.yaml": releaseYAML("v0.1.0"), "releases/gateways/v0.2.0.yaml": releaseYAML("v0.2.0")})
	first := w.change("no version", "targetVersion", "")
	w.until(w.daemon(), "it is on v0.1.0", func() bool { return w.on("v0.1.0") == 1 })
	w.wantBecause("gw-01", first)
	swept := w.push("nothing that matters", map[string]string{"README.md": "x"})
	w.until(w.daemon(func(c *Config) { c.OwnVersion = "v0.2.0" }), "it is on v0.2.0", func() bool { return w.on("v0.2.0") == 1 })
	if got := w.because("gw-01"); got.Commit != swept || got.Subject != schema.BecauseSwept || got.Author != "" {
		t.Errorf("gw-01 was assigned what it has by %+v, want that none was found at %s", got, swept)
	}
}

// rootless has no commit but that which is fetched.
type rootless struct{ *memRemote }

func (r *rootless) Diff(context.Context, string, string, func(path, oldBlob, newBlob string, mode uint32) error) error {
	return &memError{"not-found", "the commit is not here"}
}

// endless has commits before each that change nothing.
type endless struct {
	*memRemote
	asked int
}

func (e *endless) Parents(_ context.Context, commit string) ([]string, error) {
	if e.asked++; e.asked > maxTraced*2 {
		return nil, fmt.Errorf("asked about %d commits", e.asked)
	}
	return []string{commit}, nil
}

func otherSerial(id string) string {
	return strings.Replace(deviceYAML(id, ""), `serial: "`+id+`"`, `serial: "other`+id+`"`, 1)
}

func (w *world) because(id string) *schema.Because {
	w.t.Helper()
	return w.status().Devices[id].Assignment.Because
}

func (w *world) wantBecause(id, commit string) {
	w.t.Helper()
	if got := w.because(id); got.Commit != commit || got.Author != "op@example.com" || got.Subject != w.repo.commits[commit].message {
		w.t.Errorf("%s was assigned what it has by %+v, want %s", id, got, commit)
	}
}

// assigned says whether a device has an attempt of at least this number.
func (w *world) assigned(attempt int64, id string) bool {
	return w.status().Devices[id].Assignment.Attempt >= attempt
}
