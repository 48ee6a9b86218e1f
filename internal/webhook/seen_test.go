package webhook

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
)

func TestB113_ReplaysDoNothing(t *testing.T) {
	b := newBench(t)
	first := b.request("push", pushBody("refs/heads/main", commitA, commitB))
	id := first.Header.Get(headerDelivery)
	b.want(first, http.StatusAccepted, "push main a..b")
	for range 3 { // the same again
		r := b.request("push", pushBody("refs/heads/main", commitA, commitB))
		r.Header.Set(headerDelivery, id)
		b.want(r, http.StatusOK, "")
	}
	// The id is not signed: another one, or none, does not make it new.
	b.want(b.request("push", pushBody("refs/heads/main", commitA, commitB)), http.StatusOK, "")
	r := b.request("push", pushBody("refs/heads/main", commitA, commitB))
	r.Header.Del(headerDelivery)
	b.want(r, http.StatusOK, "")
	// The same id with another body is none of GitHub's.
	r = b.request("push", pushBody("refs/heads/main", commitB, commitA))
	r.Header.Set(headerDelivery, id)
	b.want(r, http.StatusOK, "")
	b.want(b.request("push", pushBody("refs/heads/main", commitB, commitA)), http.StatusAccepted, "push main b..a")

	// What was refused is not remembered.
	body := pushBody("refs/heads/main", commitA, zeros)
	r = b.request("push", body)
	id = r.Header.Get(headerDelivery)
	r.Header.Set(headerSignature, sign("wrong", body))
	b.want(r, http.StatusUnauthorized, "")
	r = b.request("push", body)
	r.Header.Set(headerDelivery, id)
	b.want(r, http.StatusAccepted, "push main a..")
}

func TestB113_DuplicatesAtOnceAreOne(t *testing.T) {
	b := newBench(t)
	var all sync.WaitGroup
	for range 20 {
		r := b.request("push", pushBody("refs/heads/main", commitA, commitB))
		r.Header.Set(headerDelivery, "one")
		all.Go(func() { b.do(r) })
	}
	all.Wait()
	if heard := b.take(); heard != "push main a..b" {
		t.Errorf("told %q", heard)
	}
}

func TestSeenIsBounded(t *testing.T) {
	s := newSeen()
	k := func(i int) key { return keyOf("x", []byte(strconv.Itoa(i))) }
	for i := range 3 * maxSeen {
		if !s.add(k(i)) {
			t.Fatalf("%d was there before", i)
		}
	}
	if len(s.keys) != maxSeen || len(s.ring) != maxSeen {
		t.Errorf("%d keys are remembered in a ring of %d", len(s.keys), len(s.ring))
	}
	if s.add(k(3*maxSeen-1)) || s.add(k(2*maxSeen)) || !s.add(k(2*maxSeen-1)) {
		t.Error("it does not remember just the last ones")
	}
}
