package reconcile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// payloadLimit bounds one payload in bytes when it is read back.
const payloadLimit = 64 << 20

var payloadDigest = regexp.MustCompile(`^sha256:([0-9a-f]{64})$`)

// payloadPath is where the bytes of a digest stand; the digest is fleet
// content and becomes part of a path only when it is one.
func payloadPath(digest string) (string, error) {
	m := payloadDigest.FindStringSubmatch(digest)
	if m == nil {
		return "", fmt.Errorf("payload %q is no sha256 digest", digest)
	}
	return payloadDir + "/" + m[1], nil
}

// payload reads the bytes of a digest, and never gives others.
func (a *Agent) payload(digest string) ([]byte, error) {
	p, err := payloadPath(digest)
	if err != nil {
		return nil, failure.Permanent("files", "", "%w", err)
	}
	b, err := a.root.ReadFile(p, payloadLimit)
	if err == nil && schema.PayloadDigest(b) != digest {
		err = errors.New("the bytes on disk are damaged")
	}
	if err != nil {
		// in memory only between the poll and the prefetch
		if held, ok := a.payloads[digest]; ok {
			return held, nil
		}
		a.forget()
		return nil, failure.Retryable("files", digest, "read payload: %w", err)
	}
	return b, nil
}

// KeptPayloads gives the digests of the payloads that are whole on the device
// with this root: they need not be delivered again.
func KeptPayloads(root string) []string {
	r, err := disk.Open(root, disk.Options{Step: func(string, string) error { return errReadOnly }})
	if err != nil {
		return nil
	}
	defer r.Close()
	var kept []string
	programs, _ := r.List(programsDir) // where there are none, none is kept
	for _, e := range programs {
		if sum, err := r.Sum(programPath(e.Name())); err == nil && sum == e.Name() {
			kept = append(kept, "sha256:"+sum)
		}
	}
	entries, _ := r.List(payloadDir)
	for _, e := range entries {
		digest := "sha256:" + e.Name()
		p, err := payloadPath(digest)
		if err != nil {
			continue
		}
		if b, err := r.ReadFile(p, payloadLimit); err == nil && schema.PayloadDigest(b) == digest {
			kept = append(kept, digest)
		}
	}
	return kept
}

// prefetch has every payload of the spec on disk when it returns nil.
func (a *Agent) prefetch(spec *schema.Spec) error {
	if err := a.prefetchFiles(payloadsOf(spec)); err != nil {
		return err
	}
	if err := a.prefetchProgram(spec.Agent); err != nil {
		return err
	}
	a.payloads = nil
	return nil
}

// prefetchFiles is prefetch for all that becomes files.
func (a *Agent) prefetchFiles(want []string) error {
	if len(want) == 0 {
		return nil
	}
	if _, err := a.root.MkdirAll(payloadDir, privDir); err != nil {
		return failure.Retryable("files", payloadDir, "make the payload folder: %w", err)
	}
	for _, digest := range want {
		p, err := payloadPath(digest)
		if err != nil {
			return failure.Permanent("files", "", "%w", err)
		}
		if b, err := a.root.ReadFile(p, payloadLimit); err == nil && schema.PayloadDigest(b) == digest && !a.root.Doubtful(p) {
			continue
		}
		b, ok := a.payloads[digest]
		if !ok {
			a.forget()
			return failure.Retryable("files", digest, "the payload was not delivered")
		}
		if schema.PayloadDigest(b) != digest {
			return failure.Retryable("files", digest, "the delivered payload has another digest")
		}
		if err := a.root.WriteFile(p, b, disk.Meta{Mode: 0o600, UID: -1, GID: -1}); err != nil {
			return failure.Retryable("files", digest, "keep payload: %w", err)
		}
	}
	return nil
}

// prefetchProgram is prefetch for the agent's program, which has a place of its
// own.
func (a *Agent) prefetchProgram(want *schema.AgentProgram) error {
	if want == nil || want.Payload == "" || a.runs(want) || a.hasProgram(want.Sum()) {
		return nil
	}
	b, ok := a.payloads[want.Payload]
	if !ok {
		a.forget()
		return failure.Retryable(programComponent, want.Version, "the program was not delivered")
	}
	if err := a.placeProgram(bytes.NewReader(b), want.Sum()); err != nil {
		return failure.Retryable(programComponent, want.Version, "keep the program: %w", err)
	}
	return nil
}

// keep puts payloads on disk as far as that works; PRE-CHECK judges it.
func (a *Agent) keep(spec *schema.Spec) {
	if a.payloads == nil {
		return
	}
	if err := a.prefetch(spec); err != nil {
		a.log.Debug("payloads stay in memory", "error", err)
	}
}

// keepPayloads lets go of payloads that nothing will ask for; those of the
// current spec mend what was lost or damaged on disk.
func (a *Agent) keepPayloads(v admission, doc *schema.Assignment) {
	switch v {
	case admitBegin, admitGoOn:
		return
	case admitSame, admitDone:
		if doc.Digest == a.store.current.Digest {
			if spec, err := a.store.currentSpec(); err == nil {
				a.keep(spec)
			}
		}
	}
	a.payloads = nil
}

// forget asks control to deliver payloads again with the next look, where it
// leaves out what it has delivered before.
func (a *Agent) forget() {
	if c, ok := a.control.(interface{ Forget() }); ok {
		c.Forget()
	}
}

// prune removes payloads that no spec names any more: neither the current one,
// nor the desired, nor one that is only compared with.
// It is tidying: what it cannot do is tried after the next update.
func (a *Agent) prune() {
	a.prunePrograms()
	if a.store.attempts.Observes == 0 && !a.store.absent(observedFile) {
		if err := a.store.remove(observedFile); err != nil {
			a.log.Warn("the spec that was compared with could not be removed", "error", err)
		}
	}
	entries, err := a.root.List(payloadDir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			a.log.Warn("payloads could not be listed", "error", err)
		}
		return
	}
	if len(entries) == 0 {
		return
	}
	var keep []string
	for _, p := range []string{currentFile, desiredFile, observedFile} {
		if a.store.absent(p) {
			continue
		}
		r, err := a.store.whole(p)
		if err != nil {
			return
		}
		// the tree is enough here, and holds for specs of other versions too
		var tree map[string]any
		if len(r.Spec) > 0 && json.Unmarshal(r.Spec, &tree) != nil {
			return
		}
		keep = append(keep, schema.PayloadNames(tree)...)
	}
	for _, e := range entries {
		if slices.Contains(keep, "sha256:"+e.Name()) {
			continue
		}
		if err := a.root.Remove(payloadDir + "/" + e.Name()); err != nil {
			a.log.Warn("an unused payload could not be removed", "payload", e.Name(), "error", err)
		}
	}
}

func payloadsOf(spec *schema.Spec) []string {
	var out []string
	for _, f := range wholeSet(spec).Files {
		if f != nil && f.Payload != "" {
			out = append(out, f.Payload)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
