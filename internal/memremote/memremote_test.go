package memremote

import (
	"errors"
	"maps"
	"testing"
	"time"
)

func TestCompareAndSwap(t *testing.T) {
	r := New()
	a, b := &Client{Repo: r}, &Client{Repo: r}
	ctx := t.Context()
	first, err := a.Write(ctx, "refs/x", "", map[string][]byte{"f": []byte("1")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(ctx, "refs/x", "", map[string][]byte{"f": []byte("2")}); kind(err) != "race" {
		t.Errorf("the second writer got %v, want a race", err)
	}
	if again, err := b.Write(ctx, "refs/x", "", map[string][]byte{"f": []byte("1")}); err != nil || again != first {
		t.Errorf("the same content again: %q, %v, want %q", again, err, first)
	}
	blob, err := a.PutBlob(ctx, []byte("status\n"))
	if err != nil {
		t.Fatal(err)
	}
	commit, err := a.Commit(ctx, "", map[string]string{"s": blob}, time.Time{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Publish(ctx, map[string][2]string{"refs/heads/s": {"0000", commit}}, map[string][2]string{"refs/x": {first, ""}}); kind(err) != "race" || r.Ref("refs/x") != first {
		t.Errorf("a refused branch: %v, and the rest moved to %q", err, r.Ref("refs/x"))
	}
	refused, err := a.Publish(ctx, map[string][2]string{"refs/heads/s": {"", commit}}, map[string][2]string{"refs/x": {"0000", ""}})
	if err != nil || refused["refs/x"] == "" || r.Ref("refs/heads/s") != commit {
		t.Errorf("a branch with a refused delivery: %v, %v, branch at %q", refused, err, r.Ref("refs/heads/s"))
	}
}

func TestCutBeforeAndAfter(t *testing.T) {
	cut := NewError("network", "cut")
	for _, after := range []bool{false, true} {
		r := New()
		c := &Client{Repo: r}
		if hook := func(string, string) error { return cut }; after {
			c.After = hook
		} else {
			c.Before = hook
		}
		if _, err := c.Write(t.Context(), "refs/x", "", map[string][]byte{"f": nil}); !errors.Is(err, cut) {
			t.Errorf("after=%v: got %v", after, err)
		}
		if there := r.Ref("refs/x") != ""; there != after {
			t.Errorf("after=%v: the ref is there: %v", after, there)
		}
	}
}

func TestReplicasLag(t *testing.T) {
	r := New()
	r.History = 4
	one := r.Push("main", "one", time.Time{}, map[string][]byte{"a": []byte("1")})
	r.Set("refs/reports/x", one)
	two := r.Push("main", "two", time.Time{}, map[string][]byte{"a": []byte("2")})
	r.Set("refs/reports/x", two)
	lag := Lag{Moves: 2, But: "refs/reports/"}
	c := &Client{Repo: r, Behind: func(string, string) Lag { return lag }}
	ctx := t.Context()
	got, err := c.Refs(ctx, "refs/heads/main", "refs/reports/")
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"refs/heads/main": one, "refs/reports/x": two}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := c.Fetch(ctx, "refs/heads/main", two, true); kind(err) != "not-found" {
		t.Errorf("a replica gives a commit that it has not heard of: %v", err)
	}
	if err := c.Fetch(ctx, "refs/heads/main", one, true); err != nil {
		t.Errorf("a replica does not give a commit that it has heard of: %v", err)
	}
	tips, err := c.Tips(ctx, map[string]string{"refs/reports/x": two, "refs/reports/y": one}, 1<<20)
	if err != nil || tips["refs/reports/x"] != nil || tips["refs/reports/y"] == nil {
		t.Errorf("tips of a replica: %v, %v", tips, err)
	}
	lag.But = ""
	if commit, _, err := c.Read(ctx, "refs/reports/x", "", 1<<20); err != nil || commit != one {
		t.Errorf("read of a replica: %s, %v, want %s", commit, err, one)
	}
	if _, err := c.Write(ctx, "refs/reports/x", one, nil); kind(err) != "race" {
		t.Errorf("what a replica showed is written over: %v", err)
	}
}

func kind(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind()
	}
	return ""
}
