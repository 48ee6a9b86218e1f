package sweep_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// brokenRepo is a bare repository of one device, made with stock git, to be
// broken with it.
type brokenRepo struct {
	t     *testing.T
	dir   string
	url   string // "" = dir
	store string // copy of what is read by URL
	state string
	now   time.Time
}

// byURL serves the repository over HTTP, with a copy of its own.
func (r *brokenRepo) byURL() {
	r.url = gitserver.New(r.t, filepath.Dir(r.dir)).URL + "/fleet.git"
	r.git("", "config", "http.receivepack", "true")
	r.store = r.t.TempDir()
}

func newBrokenRepo(t *testing.T) *brokenRepo {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := &brokenRepo{t: t, dir: filepath.Join(t.TempDir(), "fleet.git"), state: t.TempDir(), now: time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)}
	r.git("", "init", "--quiet", "--bare", "-b", "main", r.dir)
	r.commit("", "first")
	r.report(1)
	return r
}

func (r *brokenRepo) git(in string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.dir, "-c", "user.name=op", "-c", "user.email=op@example.com"}, args...)...)
	if args[0] == "init" {
		cmd.Dir, cmd.Args = filepath.Dir(r.dir), append([]string{"git"}, args...)
	}
	cmd.Stdin = strings.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// blob keeps content and gives its id.
func (r *brokenRepo) blob(content string) string {
	return r.git(content, "hash-object", "-w", "--stdin")
}

// commit puts a whole fleet on main; parent "" begins a history anew.
func (r *brokenRepo) commit(parent, message string) string {
	r.t.Helper()
	id := r.commitTree(r.tree(""), parent, message)
	r.git("", "update-ref", "refs/heads/main", id)
	return id
}

// tree is the fleet's tree, with more entries as mktree takes them.
func (r *brokenRepo) tree(more string) string {
	r.t.Helper()
	const head = "apiVersion: gitopsd.dev/v1alpha1\n"
	release := r.git("100644 blob "+r.blob(head+"kind: Release\nmetadata: {name: v1.0.0}\nspec:\n  files:\n    /etc/version: {content: \"v1\\n\"}\n")+"\tv1.0.0.yaml\n", "mktree")
	return r.git(more+
		"040000 tree "+r.git("100644 blob "+r.blob(head+"kind: Device\nmetadata: {name: gw-1}\nspec: {}\n")+"\tgw-1.yaml\n", "mktree")+"\tdevices\n"+
		"040000 tree "+r.git("100644 blob "+r.blob(head+"kind: Policy\nmetadata: {name: gateways}\nspec: {enabled: true, targetVersion: v1.0.0}\n")+"\tgateways.yaml\n", "mktree")+"\tpolicies\n"+
		"040000 tree "+r.git("040000 tree "+release+"\tgateways\n", "mktree")+"\treleases\n", "mktree", "--missing")
}

func (r *brokenRepo) commitTree(tree, parent, message string) string {
	r.t.Helper()
	args := []string{"commit-tree", tree, "-m", message}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	return r.git("", args...)
}

// report lets the device say something new.
func (r *brokenRepo) report(sequence int64) {
	r.t.Helper()
	data, err := schema.Encode(schema.Report{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindReport}, Metadata: schema.Metadata{Name: "gw-1"},
		InstallID: "a", Sequence: sequence, AgentVersion: "v0.1.0", ProtocolVersion: 1, Capabilities: []string{"files"},
		Current: schema.SpecRef{Version: sweep.AssumedVersion}, Phase: schema.PhaseUpdated, ReportedAt: r.now, Busy: sequence%2 == 0,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	tree := r.git("100644 blob "+r.blob(string(data))+"\treport.yaml\n", "mktree")
	r.git("", "update-ref", schema.DefaultReportRefs+"gw-1", r.commitTree(tree, "", "report"))
}

// sweep is a daemon's first pass, a minute later.
func (r *brokenRepo) sweep(accept sweep.Accept) sweep.Pass {
	r.t.Helper()
	r.now = r.now.Add(time.Minute)
	remote, err := repo.Open(repo.Config{URL: cmp.Or(r.url, r.dir), Store: r.store})
	if err != nil {
		r.t.Fatal(err)
	}
	d, err := sweep.New(sweep.Config{
		Remote: remote, State: r.state, Now: func() time.Time { return r.now }, Accept: accept,
		Uptime: func() (time.Duration, string, error) { return time.Duration(r.now.Unix()) * time.Second, "boot", nil },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	p, err := d.Once(r.t.Context())
	if err != nil {
		r.t.Fatalf("the pass could not be done: %v", err)
	}
	return p
}

// stops checks that a pass, and the one after it, stop for this reason.
func (r *brokenRepo) stops(reason, says string) {
	r.t.Helper()
	for range 2 {
		p := r.sweep(sweep.Accept{})
		if len(p.Stops) != 1 || p.Stops[0].Reason != reason || !strings.Contains(p.Stops[0].Message, says) || p.Stops[0].Remedy == "" {
			r.t.Fatalf("stops are %+v, want %s that says %q", p.Stops, reason, says)
		}
		if strings.Contains(p.Stops[0].Message, r.dir) {
			r.t.Fatalf("the stop reads differently for every daemon: %s", p.Stops[0].Message)
		}
	}
}

// works checks that the remedy does, and for good.
func (r *brokenRepo) works(accept sweep.Accept) {
	r.t.Helper()
	for _, accept := range []sweep.Accept{accept, {}} {
		if p := r.sweep(accept); len(p.Stops) > 0 {
			r.t.Fatalf("with %+v stops are %+v, want none", accept, p.Stops)
		}
	}
}

const statusRef = "refs/heads/" + schema.DefaultStatusBranch

func TestRewrittenHistoryWhoseOldCommitIsGone(t *testing.T) {
	r := newBrokenRepo(t)
	r.sweep(sweep.Accept{})
	head := r.commit("", "rewritten")
	r.git("", "-c", "gc.reflogExpire=now", "reflog", "expire", "--expire=now", "--all")
	r.git("", "gc", "--quiet", "--prune=now")
	r.stops("HistoryRewritten", head)
	r.works(sweep.Accept{Rewrite: head[:10]})
}

// The same by URL, where the daemon's copy is gone and the server gives only
// what a ref reaches.
func TestRewrittenHistoryByURL(t *testing.T) {
	r := newBrokenRepo(t)
	r.byURL()
	r.sweep(sweep.Accept{})
	head := r.commit("", "rewritten")
	r.state, r.store = t.TempDir(), t.TempDir()
	r.stops("HistoryRewritten", head)
	r.report(2)
	if p := r.sweep(sweep.Accept{}); len(p.Stops) != 1 {
		t.Fatalf("stops are %+v", p.Stops)
	}
	r.works(sweep.Accept{Rewrite: head})
}

// swept edits the commit that fleet.yaml says was swept.
func (r *brokenRepo) swept(commit string) {
	r.t.Helper()
	r.edit("fleet.yaml", func(text string) string {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			if strings.HasPrefix(line, "sourceCommit:") {
				lines[i] = fmt.Sprintf("sourceCommit: %q", commit)
			}
		}
		return strings.Join(lines, "\n")
	})
}

// edit changes a file at the top of the status branch.
func (r *brokenRepo) edit(file string, change func(string) string) {
	r.t.Helper()
	id := r.blob(change(r.git("", "show", statusRef+":"+file) + "\n"))
	var entries []string
	for line := range strings.SplitSeq(r.git("", "ls-tree", statusRef), "\n") {
		if !strings.HasSuffix(line, "\t"+file) {
			entries = append(entries, line)
		}
	}
	entries = append(entries, "100644 blob "+id+"\t"+file)
	tree := r.git(strings.Join(entries, "\n")+"\n", "mktree")
	r.git("", "update-ref", statusRef, r.commitTree(tree, statusRef, "by hand"))
}

func TestSweptCommitThatIsNone(t *testing.T) {
	r := newBrokenRepo(t)
	r.sweep(sweep.Accept{})
	head := r.git("", "rev-parse", "refs/heads/main")
	for _, commit := range []string{"abc", "--upload-pack=x", r.blob("a blob"), strings.Repeat("0", 40), "\x1b[31m", strings.Repeat("z", 64)} {
		t.Run(fmt.Sprintf("%.12q", commit), func(t *testing.T) {
			r := &brokenRepo{t: t, dir: r.dir, state: t.TempDir(), now: r.now}
			before := r.git("", "rev-parse", statusRef)
			r.swept(commit)
			r.stops("HistoryRewritten", "cannot be compared")
			r.works(sweep.Accept{Rewrite: head})
			r.git("", "update-ref", statusRef, before)
		})
	}
}

func TestHeadWhoseTreeIsBroken(t *testing.T) {
	missing := strings.Repeat("1", 40)
	nested := func(r *brokenRepo) string {
		tree := r.git("", "mktree")
		for range 200 {
			tree = r.git("040000 tree "+tree+"\td\n", "mktree")
		}
		return r.tree("040000 tree " + tree + "\tdeep\n")
	}
	raw := func(r *brokenRepo, names ...string) string {
		id := r.blob("x\n")
		var b bytes.Buffer
		for _, name := range names {
			b.WriteString("100644 " + name + "\x00")
			for i := 0; i < len(id); i += 2 {
				var c byte
				fmt.Sscanf(id[i:i+2], "%02x", &c)
				b.WriteByte(c)
			}
		}
		return r.git(b.String(), "hash-object", "-t", "tree", "-w", "--stdin", "--literally")
	}
	for name, tree := range map[string]func(*brokenRepo) string{
		"nested too deep": nested,
		"an entry twice":  func(r *brokenRepo) string { return raw(r, "a", "a") },
		"dot dot":         func(r *brokenRepo) string { return raw(r, "..") },
		"a missing device": func(r *brokenRepo) string {
			return r.git("040000 tree "+r.git("100644 blob "+missing+"\tgw-1.yaml\n", "mktree", "--missing")+"\tdevices\n", "mktree")
		},
		"a missing tree": func(*brokenRepo) string { return missing },
	} {
		t.Run(name, func(t *testing.T) {
			r := newBrokenRepo(t)
			if !strings.Contains(name, "missing") { // a server gives out nothing of a history that it lacks a part of
				r.byURL()
			}
			r.sweep(sweep.Accept{})
			id := r.git("tree "+tree(r)+"\nparent "+r.git("", "rev-parse", "refs/heads/main")+
				"\nauthor op <op@example.com> 1 +0000\ncommitter op <op@example.com> 1 +0000\n\nbroken\n", "hash-object", "-t", "commit", "-w", "--stdin", "--literally")
			if err := os.WriteFile(filepath.Join(r.dir, "refs/heads/main"), []byte(id+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			r.stops("InvalidFleet", id[:12])
			// What devices say goes on.
			r.report(2)
			if p := r.sweep(sweep.Accept{}); !p.Committed {
				t.Fatal("what the device says is not written")
			}
			r.commit(id, "correct again")
			r.works(sweep.Accept{})
		})
	}
}

func TestStatusBranchThatIsNone(t *testing.T) {
	for name, brk := range map[string]func(r *brokenRepo){
		"a blob": func(r *brokenRepo) { r.point(statusRef, r.blob("x\n")) },
		"a tag": func(r *brokenRepo) {
			r.git("", "tag", "-a", "-m", "x", "status", statusRef)
			r.point(statusRef, r.git("", "rev-parse", "refs/tags/status"))
		},
		"a large document": func(r *brokenRepo) {
			r.edit("fleet.yaml", func(text string) string { return text + "#" + strings.Repeat("x", 33<<20) + "\n" })
		},
		"a tree with an entry twice": func(r *brokenRepo) {
			entry := "100644 a\x00" + strings.Repeat("\x01", 20)
			tree := r.git(entry+entry, "hash-object", "-t", "tree", "-w", "--stdin", "--literally")
			r.git("", "update-ref", statusRef, r.commitTree(tree, statusRef, "by hand"))
		},
	} {
		for _, byURL := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/byURL=%v", name, byURL), func(t *testing.T) {
				r := newBrokenRepo(t)
				if byURL {
					r.byURL()
				}
				r.sweep(sweep.Accept{})
				head := r.git("", "rev-parse", "refs/heads/main")
				brk(r)
				before := r.git("", "rev-parse", statusRef)
				r.stops("StatusUnreadable", "")
				if r.git("", "rev-parse", statusRef) != before {
					t.Fatal("it was written to")
				}
				r.works(sweep.Accept{StatusLoss: head})
			})
		}
	}
}

// point writes a ref as no git command would.
func (r *brokenRepo) point(ref, id string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, ref), []byte(id+"\n"), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// A report ref that names no commit is told as what it is, by device.
func TestReportRefThatNamesNoCommit(t *testing.T) {
	for name, id := range map[string]func(r *brokenRepo) string{
		"a blob":         func(r *brokenRepo) string { return r.blob("x\n") },
		"nothing at all": func(*brokenRepo) string { return strings.Repeat("1", 40) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newBrokenRepo(t)
			r.sweep(sweep.Accept{})
			r.point(schema.DefaultReportRefs+"gw-1", id(r))
			r.works(sweep.Accept{})
			text := r.git("", "show", statusRef+":devices/gw-1.yaml")
			if !strings.Contains(text, "its ref names no commit") {
				t.Fatalf("the status says\n%s", text)
			}
			r.report(2)
			r.works(sweep.Accept{})
			if text := r.git("", "show", statusRef+":devices/gw-1.yaml"); strings.Contains(text, "names no commit") {
				t.Fatalf("the status still says\n%s", text)
			}
		})
	}
}
