package sweep

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// replica is a remote that shows an old status branch, and deliveries of which
// it does not have what they name.
type replica struct {
	*memRemote
	status string // commit; "" = the present one
	blind  bool
}

func (r *replica) Refs(ctx context.Context, prefixes ...string) (map[string]string, error) {
	refs, err := r.memRemote.Refs(ctx, prefixes...)
	if name := branchRef(schema.DefaultStatusBranch); err == nil && r.status != "" && refs[name] != "" {
		refs = maps.Clone(refs)
		refs[name] = r.status
	}
	return refs, err
}

func (r *replica) Tips(ctx context.Context, refs map[string]string, limit int64) (map[string]map[string][]byte, error) {
	out, err := r.memRemote.Tips(ctx, refs, limit)
	for ref := range out {
		if r.blind && strings.HasPrefix(ref, schema.DefaultDeviceRefs) {
			out[ref] = nil
		}
	}
	return out, err
}

// A branch that is seen as it was before did not go back.
func TestStatusBranchOfAReplicaThatLags(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, _, _ := settled(t, 3)
		remote := &replica{memRemote: w.remote()}
		d := w.daemon(func(c *Config) { c.Remote, c.State = remote, "" })
		w.sweep(d)
		before := w.repo.ref(branchRef(schema.DefaultStatusBranch))
		w.change("pause", "paused", "{reason: wait}")
		w.pass(time.Minute)
		w.sweep(d)
		listed := 0
		remote.onCall = func(_ int, op string) {
			remote.status = ""
			if op == "refs" {
				if listed++; listed == 1 {
					remote.status = before
				}
			}
		}
		w.pass(time.Minute)
		wantNoStop(t, w.sweep(d))
		if listed < 2 {
			t.Fatal("the branch was not looked at again")
		}
	})
}

// A generation that cannot be read is no older one.
func TestDeliveryThatAReplicaDoesNotHaveYet(t *testing.T) {
	w, d, dev := settled(t, 3)
	late := &replica{memRemote: w.remote(), status: w.repo.ref(branchRef(schema.DefaultStatusBranch)), blind: true}
	w.change("pause", "paused", "{reason: wait}")
	w.pass(time.Minute)
	if p := w.sweep(d); len(p.Recalled) != 1 {
		t.Fatalf("nothing was recalled: %+v", p)
	}
	before := dev.read()
	stale := w.daemon(func(c *Config) { c.Remote, c.State = late, "" })
	_, _ = stale.Once(t.Context()) // it may see that it is late
	if doc := dev.read(); doc.Generation != before.Generation {
		t.Fatalf("a recalled document of generation %d is delivered after %d", doc.Generation, before.Generation)
	}
}

func TestDeliveryThatIsDamagedForGood(t *testing.T) {
	w, _ := done(t, 3)
	ref := schema.DefaultDeviceRefs + "gw-02"
	remote := &replica{memRemote: w.remote(), blind: true}
	d := w.daemon(func(c *Config) { c.Remote, c.State = remote, "" })
	w.repo.force(ref, map[string][]byte{"half": []byte("of a document")})
	damaged := w.repo.ref(ref)
	w.sweep(d)
	if w.repo.ref(ref) != damaged {
		t.Fatal("it was written over at once, though a replica may only lag")
	}
	for range 2 {
		w.pass(repairEvery)
		if _, err := d.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if doc := w.devices["gw-02"].read(); doc == nil || doc.Spec == nil {
		t.Fatalf("after an hour it is still damaged: %+v", doc)
	}
}
