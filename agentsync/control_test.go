package agentsync

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// memory is a repository in memory.
type memory struct {
	mu      sync.Mutex
	refs    map[string]string
	commits map[string]map[string][]byte
	reads   []string // ref, and whether content was sent
	writes  int
	closed  bool
	fail    func(op string) error // asked first
	stall   bool
}

func newMemory() *memory {
	return &memory{refs: map[string]string{}, commits: map[string]map[string][]byte{}}
}

type kindError string

func (e kindError) Error() string { return "remote: " + string(e) }
func (e kindError) Kind() string  { return string(e) }

func (m *memory) begin(ctx context.Context, op string) error {
	if m.stall {
		<-ctx.Done()
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail(op)
	}
	return nil
}

func (m *memory) Read(ctx context.Context, ref, have string, limit int64) (string, map[string][]byte, error) {
	if err := m.begin(ctx, "read"); err != nil {
		return "", nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	commit := m.refs[ref]
	if commit == "" || commit == have {
		m.reads = append(m.reads, ref+" unchanged")
		return commit, nil, nil
	}
	m.reads = append(m.reads, ref+" whole")
	return commit, m.commits[commit], nil
}

func (m *memory) Write(ctx context.Context, ref, old string, files map[string][]byte) (string, error) {
	if err := m.begin(ctx, "write"); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	if m.refs[ref] != old {
		return "", kindError("race")
	}
	return m.put(ref, files), nil
}

func (m *memory) put(ref string, files map[string][]byte) string {
	h := sha256.New()
	for _, k := range sorted(files) {
		fmt.Fprintf(h, "%s %x\n", k, files[k])
	}
	commit := fmt.Sprintf("%x", h.Sum(nil))[:40]
	m.refs[ref], m.commits[commit] = commit, files
	return commit
}

func sorted(m map[string][]byte) []string {
	return slices.Sorted(maps.Keys(m))
}

func (m *memory) Answers(ctx context.Context) error { return m.begin(ctx, "answers") }
func (m *memory) Close() error                      { m.closed = true; return nil }

const device, deviceRef, reportRef = "gw-1", "refs/gitopsd/devices/gw-1", "refs/gitopsd/reports/gw-1"

func control(t *testing.T, m *memory, log *bytes.Buffer) *Control {
	t.Helper()
	cfg := Config{Remote: Fixed(m), Device: device}
	if log != nil {
		cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// delivery makes the files of one, payloads given by content.
func delivery(t *testing.T, change func(a *schema.Assignment), payloads ...string) map[string][]byte {
	t.Helper()
	files, named := map[string][]byte{}, map[string]any{"/etc/plain": map[string]any{"content": "x: 1\n", "mode": "0600"}}
	for i, p := range payloads {
		sum := schema.PayloadDigest([]byte(p))
		files["payloads/"+strings.TrimPrefix(sum, "sha256:")] = []byte(p)
		named[fmt.Sprintf("/etc/p%d", i)] = map[string]any{"payload": sum}
	}
	a := &schema.Assignment{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindAssignment}, Metadata: schema.Metadata{Name: device},
		Generation: 7, For: "inst", Attempt: 3, Version: "v1.5.0",
		Spec: map[string]any{"files": named, "hooks": map[string]any{"afterUpdating": map[string]any{"check": map[string]any{
			"run": []any{"/bin/true", "1.10", "0123"}, "timeout": "30s", "order": 10}}}},
	}
	digest, err := schema.Digest(a.Spec)
	if err != nil {
		t.Fatal(err)
	}
	a.Digest = digest
	if change != nil {
		change(a)
	}
	if files["assignment.yaml"], err = schema.Encode(a); err != nil {
		// our daemon would not write it; another program may
		if files["assignment.yaml"], err = json.Marshal(a); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestLook_ReadsOnceAndThenAsksOnly(t *testing.T) {
	m := newMemory()
	c := control(t, m, nil)
	if d, problem, err := c.Look(t.Context()); d.Revision != "" || d.Assignment != nil || problem != "" || err != nil {
		t.Errorf("no ref: %+v %q %v", d, problem, err)
	}
	commit := m.put(deviceRef, delivery(t, nil, "one", "two"))
	d, problem, err := c.Look(t.Context())
	if err != nil || problem != "" || d.Revision != commit || d.Assignment == nil || len(d.Payloads) != 2 {
		t.Fatalf("%+v %q %v", d, problem, err)
	}
	if string(d.Payloads[schema.PayloadDigest([]byte("two"))]) != "two" || d.Assignment.Attempt != 3 {
		t.Errorf("%+v", d)
	}
	if spec, err := schema.DecodeSpec(d.Assignment.Spec); err != nil || spec.Hooks.AfterUpdating["check"].Run[1] != "1.10" {
		t.Errorf("spec %+v, %v", spec, err)
	}
	m.reads = nil
	again, problem, err := c.Look(t.Context())
	if err != nil || problem != "" || again.Assignment != d.Assignment || again.Payloads != nil || again.Revision != commit {
		t.Errorf("unchanged: %+v %q %v", again, problem, err)
	}
	if len(m.reads) != 1 || m.reads[0] != deviceRef+" unchanged" {
		t.Errorf("read %v", m.reads)
	}
	c.Forget()
	if d, _, err := c.Look(t.Context()); err != nil || len(d.Payloads) != 2 {
		t.Errorf("after Forget: %+v %v", d, err)
	}
	m.put(deviceRef, delivery(t, func(a *schema.Assignment) { a.Generation, a.Spec, a.Digest, a.Version, a.Recalled = 8, nil, "", "", 3 }))
	if d, problem, err := c.Look(t.Context()); err != nil || problem != "" || d.Assignment == nil || d.Assignment.Recalled != 3 {
		t.Errorf("recall: %+v %q %v", d, problem, err)
	}
	delete(m.refs, deviceRef)
	if d, problem, err := c.Look(t.Context()); d.Revision != "" || d.Assignment != nil || problem != "" || err != nil {
		t.Errorf("the ref vanished: %+v %q %v", d, problem, err)
	}
}

// A spec that wants nothing is one to act on, unlike a document without.
func TestLook_EmptySpec(t *testing.T) {
	m := newMemory()
	c := control(t, m, nil)
	digest, err := schema.Digest(map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	m.put(deviceRef, delivery(t, func(a *schema.Assignment) { a.Spec, a.Digest = map[string]any{}, digest }))
	if d, problem, err := c.Look(t.Context()); err != nil || problem != "" || d.Assignment == nil || d.Assignment.Spec == nil {
		t.Errorf("%+v %q %v", d.Assignment, problem, err)
	}
}

func TestLook_UnusableDocuments(t *testing.T) {
	good := delivery(t, nil, "one")
	payload := "payloads/" + strings.TrimPrefix(schema.PayloadDigest([]byte("one")), "sha256:")
	with := func(name string, data string) map[string][]byte {
		f := maps.Clone(good)
		if f[name] = []byte(data); data == "" {
			delete(f, name)
		}
		return f
	}
	text := func(old, new string) map[string][]byte {
		s := string(good["assignment.yaml"])
		if !strings.Contains(s, old) {
			t.Fatalf("%q is not in\n%s", old, s)
		}
		return with("assignment.yaml", strings.Replace(s, old, new, 1))
	}
	for name, c := range map[string]struct {
		files map[string][]byte
		says  string
	}{
		"no document":             {with("assignment.yaml", ""), "assignment.yaml"},
		"nothing at all":          {map[string][]byte{}, "assignment.yaml"},
		"empty":                   {with("assignment.yaml", "# nothing\n"), "assignment.yaml"},
		"no YAML":                 {with("assignment.yaml", "\t{"), "assignment.yaml"},
		"bytes":                   {with("assignment.yaml", "\xff\xfe\x00"), "assignment.yaml"},
		"nested deeply":           {with("assignment.yaml", strings.Repeat("[", 20000)), "assignment.yaml"},
		"two documents":           {with("assignment.yaml", string(good["assignment.yaml"])+"---\na: 1\n"), "assignment.yaml"},
		"a key twice":             {text("generation: 7", "generation: 7\ngeneration: 8"), "generation"},
		"another kind":            {text("kind: Assignment", "kind: Report"), "Assignment"},
		"unknown field":           {text("generation: 7", "generation: 7\ngenerations: 8"), "generations"},
		"another device":          {delivery(t, func(a *schema.Assignment) { a.Metadata.Name = "gw-2" }), "gw-2"},
		"generation 0":            {delivery(t, func(a *schema.Assignment) { a.Generation = 0 }), "generation 0"},
		"spec without attempt":    {delivery(t, func(a *schema.Assignment) { a.Attempt = 0 }), "attempt"},
		"spec and recall":         {delivery(t, func(a *schema.Assignment) { a.Recalled = 3 }), "once"},
		"changed spec":            {text("30s", "31s"), "digest"},
		"no digest":               {delivery(t, func(a *schema.Assignment) { a.Digest = "" }), "digest"},
		"payload missing":         {with(payload, ""), "missing"},
		"payload changed":         {with(payload, "One"), "other content"},
		"payload is no digest":    {delivery(t, badPayload(t, "sha256:../../etc/shadow")), "payload"},
		"payload is a half":       {delivery(t, badPayload(t, "sha256:00")), "payload"},
		"changed unknown in spec": {text(`timeout: "30s"`, "timeout: \"30s\"\n        then: 5"), "digest"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			ctl := control(t, m, nil)
			commit := m.put(deviceRef, c.files)
			for range 2 { // and from memory
				d, problem, err := ctl.Look(t.Context())
				if err != nil || d.Assignment != nil || d.Payloads != nil || d.Revision != commit {
					t.Fatalf("%+v %q %v", d, problem, err)
				}
				if !strings.Contains(problem, c.says) || strings.Contains(problem, "\n") {
					t.Errorf("problem %q does not say %q", problem, c.says)
				}
			}
			m.put(deviceRef, good)
			if d, problem, err := ctl.Look(t.Context()); err != nil || problem != "" || d.Assignment == nil {
				t.Errorf("a good one afterwards: %+v %q %v", d, problem, err)
			}
		})
	}
}

func badPayload(t *testing.T, p string) func(a *schema.Assignment) {
	return func(a *schema.Assignment) {
		a.Spec = map[string]any{"files": map[string]any{"/etc/x": map[string]any{"payload": p}}}
		var err error
		if a.Digest, err = schema.Digest(a.Spec); err != nil {
			t.Fatal(err)
		}
	}
}

// A spec of a newer form can be refused by name only if its attempt is known.
func TestLook_SpecThatIsNotUnderstood(t *testing.T) {
	m := newMemory()
	m.put(deviceRef, delivery(t, func(a *schema.Assignment) {
		a.Spec["applications"] = map[string]any{"web": map[string]any{"image": "x"}}
		var err error
		if a.Digest, err = schema.Digest(a.Spec); err != nil {
			t.Fatal(err)
		}
	}, "one"))
	d, problem, err := control(t, m, nil).Look(t.Context())
	if err != nil || problem != "" || d.Assignment == nil || d.Assignment.Attempt != 3 || len(d.Payloads) != 1 {
		t.Fatalf("%+v %q %v", d, problem, err)
	}
	if _, err := schema.DecodeSpec(d.Assignment.Spec); err == nil || !strings.Contains(err.Error(), "applications") {
		t.Errorf("the spec is not refused: %v", err)
	}
}

// A device must not do half of what it was told: a document with a field that
// it does not know is not acted on. What a newer daemon tells people of its
// reasons is no such field, also where the document takes something back.
func TestLook_FieldsOfANewerDaemon(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"\ngeneration:", "\nafter: gw-02\ngeneration:", "unknown field"},
		{"\nhold:\n", "\nhold:\n  until: tomorrow\n", "unknown field"},
		{"\nbecause:\n", "\nbecause:\n  change: 17\n", ""},
		{"\nbecause:\n", "\nwhy: 17\nbecause:\n  change: 17\n", "unknown field"},
		{"\nbecause:\n", "\nbecause:\n  policy: [17]\n", "string is wanted"},
	} {
		for _, recall := range []bool{false, true} {
			files := delivery(t, func(a *schema.Assignment) {
				a.Hold, a.Because = &schema.Reason{Reason: "disk"}, &schema.Because{Commit: "4f2c91a"}
				if recall {
					a.Spec, a.Version, a.Digest, a.Recalled = nil, "", "", a.Attempt
				}
			})
			text := string(files["assignment.yaml"])
			files["assignment.yaml"] = []byte(strings.Replace(text, c.old, c.new, 1))
			if string(files["assignment.yaml"]) == text {
				t.Fatalf("no %q in\n%s", c.old, text)
			}
			m := newMemory()
			m.put(deviceRef, files)
			d, problem, err := control(t, m, nil).Look(t.Context())
			if err != nil || (c.want == "") != (problem == "") || !strings.Contains(problem, c.want) {
				t.Errorf("%q, recall %t: %q %v", c.new, recall, problem, err)
				continue
			}
			if a := d.Assignment; (a != nil) != (c.want == "") || a != nil && ((a.Spec == nil) != recall || a.Hold == nil || a.Because.Commit != "4f2c91a") {
				t.Errorf("%q, recall %t: %+v", c.new, recall, a)
			}
		}
	}
}

func TestLook_GenerationNeverFalls(t *testing.T) {
	m := newMemory()
	c := control(t, m, nil)
	at := func(g int64) string {
		m.put(deviceRef, delivery(t, func(a *schema.Assignment) { a.Generation = g }))
		_, problem, err := c.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return problem
	}
	if p := at(9); p != "" {
		t.Error(p)
	}
	if p := at(8); !strings.Contains(p, "older") {
		t.Errorf("a generation that fell: %q", p)
	}
	if p := at(9) + at(10); p != "" {
		t.Error(p)
	}
}

func report(seq int64, install string) *schema.Report {
	return &schema.Report{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindReport}, Metadata: schema.Metadata{Name: device},
		InstallID: install, Sequence: seq, AgentVersion: "v1.0.0", ProtocolVersion: 1, Capabilities: []string{"files"},
		HeartbeatInterval: schema.Duration(10 * time.Minute), Current: schema.SpecRef{Version: "v0.0.0"}, Phase: schema.PhaseUpdated,
		ReportedAt: time.Date(2026, 3, 1, 2, 3, 4, 0, time.UTC),
	}
}

func (m *memory) report(t *testing.T) (r schema.Report) {
	t.Helper()
	if p := schema.Decode("report.yaml", m.commits[m.refs[reportRef]]["report.yaml"], &r); !noErrors(p) {
		t.Fatalf("the report cannot be read: %v", p)
	}
	return r
}

func TestReport_RemembersTheTipAndGoesOnAfterARace(t *testing.T) {
	m, log := newMemory(), &bytes.Buffer{}
	c := control(t, m, log)
	send := func(seq int64) {
		t.Helper()
		if err := c.Report(t.Context(), report(seq, "mine")); err != nil {
			t.Fatal(err)
		}
		if got := m.report(t); got.Sequence != seq || got.InstallID != "mine" {
			t.Errorf("there is sequence %d of %s", got.Sequence, got.InstallID)
		}
	}
	send(1)
	send(2)
	if len(m.reads) != 1 || m.writes != 2 {
		t.Errorf("two reports: read %v, %d writes", m.reads, m.writes)
	}
	other, err := schema.Encode(report(50, "other"))
	if err != nil {
		t.Fatal(err)
	}
	m.put(reportRef, map[string][]byte{"report.yaml": other})
	send(3)
	if !strings.Contains(log.String(), "other") {
		t.Errorf("the other installation is not told: %s", log)
	}
	for i, junk := range []map[string][]byte{{"report.yaml": []byte("\t{")}, {}, nil} {
		m.put(reportRef, junk)
		send(int64(4 + i))
	}
}

func TestReport_RacesAreBounded(t *testing.T) {
	m := newMemory()
	n := 0
	m.fail = func(op string) error {
		if op == "write" {
			n++
			return kindError("race")
		}
		return nil
	}
	err := control(t, m, nil).Report(t.Context(), report(1, "mine"))
	if kind(err) != "race" || n != maxRaces {
		t.Errorf("%d tries, %v", n, err)
	}
}

// The answer to a push was lost: whether it arrived is found out next time.
func TestReport_AfterAnUncertainPush(t *testing.T) {
	m := newMemory()
	c := control(t, m, nil)
	if err := c.Report(t.Context(), report(1, "mine")); err != nil {
		t.Fatal(err)
	}
	m.fail = func(op string) error {
		if op == "write" {
			data, _ := schema.Encode(report(2, "mine"))
			m.put(reportRef, map[string][]byte{"report.yaml": data})
			return kindError("network")
		}
		return nil
	}
	if err := c.Report(t.Context(), report(2, "mine")); kind(err) != "network" {
		t.Errorf("%v, want the network's error", err)
	}
	m.fail = nil
	if err := c.Report(t.Context(), report(3, "mine")); err != nil || m.report(t).Sequence != 3 {
		t.Errorf("the next report: %v", err)
	}
}

func TestEveryOperationEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.stall = true
		c := control(t, m, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begin := time.Now()
		_, _, look := c.Look(ctx)
		for what, err := range map[string]error{"look": look, "report": c.Report(ctx, report(1, "mine")), "answers": c.Answers(ctx)} {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if took := time.Since(begin); took != 3*DefaultTimeout {
			t.Errorf("three operations took %v", took)
		}
	})
}

func TestTarget_ANewURLIsUsedAtOnce(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "etc/where")
	put := func(s string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	remotes, opened := map[string]*memory{"a": newMemory(), "b": newMemory()}, 0
	c, err := New(Config{Device: device, Remote: Target{URL: URLFile(root, "/etc/where"), Open: func(_ context.Context, url string) (Remote, error) {
		opened++
		if m := remotes[url]; m != nil {
			return m, nil
		}
		return nil, errors.New("no such repository")
	}}})
	if err != nil {
		t.Fatal(err)
	}
	files := delivery(t, nil)
	remotes["a"].put(deviceRef, files)
	remotes["b"].put(deviceRef, files)
	if _, _, err := c.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "/etc/where") {
		t.Errorf("without the file: %v", err)
	}
	put("a\n")
	for range 2 {
		if d, _, err := c.Look(t.Context()); err != nil || d.Assignment == nil {
			t.Errorf("at a: %+v %v", d, err)
		}
	}
	if err := c.Report(t.Context(), report(1, "mine")); err != nil {
		t.Error(err)
	}
	put("nowhere")
	if err := c.Answers(t.Context()); err == nil {
		t.Error("a repository that is not there answers")
	}
	if remotes["a"].closed {
		t.Error("closed without another to take its place")
	}
	put("b")
	if err := c.Report(t.Context(), report(2, "mine")); err != nil || remotes["b"].report(t).Sequence != 2 {
		t.Errorf("reported to b: %v", err)
	}
	if d, _, err := c.Look(t.Context()); err != nil || d.Assignment == nil {
		t.Errorf("at b: %+v %v", d, err)
	}
	if !remotes["a"].closed || opened != 3 {
		t.Errorf("a closed: %v, %d times opened", remotes["a"].closed, opened)
	}
	for name, content := range map[string]string{"empty": " \n", "two lines": "a\nb", "control": "a\x1b[0m", "long": strings.Repeat("a", maxURL+1)} {
		put(content)
		if err := c.Answers(t.Context()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(outside, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, file); err != nil {
		t.Fatal(err)
	}
	if err := c.Answers(t.Context()); err == nil {
		t.Error("a symlink led out of the root")
	}
	c.Close()
	if !remotes["b"].closed {
		t.Error("not closed")
	}
}
