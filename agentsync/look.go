package agentsync

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gitopsd/gitopsd/schema"
)

// Names inside a delivery.
const (
	assignmentFile = "assignment.yaml"
	payloadFolder  = "payloads/"
)

// maxTold is how many problems of a document are told: the first ones say
// what kind of document it is.
const maxTold = 3

// look is the last delivery that was read, without its payloads.
type look struct {
	revision   string
	assignment *schema.Assignment
	problem    string
}

// Look reads the delivery ref and checks what stands there: name, digest,
// payloads. With an unchanged ref it is one small request, and the payloads,
// which were given before, are left out; so are those that the device keeps,
// where the server can leave them out. An error means that nothing is known;
// an unusable document is a delivery with a revision and no assignment, and
// problem says why. A spec that this program does not understand is usable
// where its digest is right: it can then be refused by name.
func (c *Control) Look(ctx context.Context) (d schema.Delivery, problem string, err error) {
	c.looking.Lock()
	defer c.looking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	s, release, err := c.remote.acquire(ctx)
	if err != nil {
		return d, "", fmt.Errorf("look at %s: %w", c.deviceRef, err)
	}
	defer release()
	commit, files, err := c.read(ctx, s.remote)
	if err != nil {
		return d, "", fmt.Errorf("look at %s: %w", c.deviceRef, err)
	}
	if commit == "" {
		c.seen = look{}
		return d, "", nil
	}
	d.Revision = commit
	if files != nil || commit != c.seen.revision {
		c.seen, c.wholly = look{revision: commit}, false
		doc, payloads, why := c.check(files)
		if why != "" {
			c.seen.problem = "delivery " + short(commit) + ": " + why
			c.log.Warn("delivery cannot be used", "device", c.device, "revision", commit, "problem", why)
		} else {
			c.seen.assignment, d.Payloads = doc, payloads
			c.generation = max(c.generation, doc.Generation)
		}
	}
	d.Assignment = c.seen.assignment
	return d, c.seen.problem, nil
}

// read reads the delivery, but for payloads that the device keeps.
func (c *Control) read(ctx context.Context, r Remote) (commit string, files map[string][]byte, err error) {
	if s, ok := r.(sparing); ok && c.kept != nil && !c.wholly {
		return s.ReadBut(ctx, c.deviceRef, c.seen.revision, c.limit, func() (paths []string) {
			for _, digest := range c.kept() {
				paths = append(paths, payloadFolder+strings.TrimPrefix(digest, "sha256:"))
			}
			return paths
		})
	}
	return r.Read(ctx, c.deviceRef, c.seen.revision, c.limit)
}

// Forget makes the next Look read everything again, for payloads that are
// needed once more.
func (c *Control) Forget() {
	c.looking.Lock()
	defer c.looking.Unlock()
	c.seen, c.wholly = look{}, true
}

func short(commit string) string { return commit[:min(len(commit), 7)] }

// check gives the document and the payloads that its spec names, as far as they
// had to come, or why they cannot be used.
func (c *Control) check(files map[string][]byte) (doc *schema.Assignment, payloads map[string][]byte, problem string) {
	data, ok := files[assignmentFile]
	if !ok {
		return nil, nil, "it has no " + assignmentFile
	}
	doc, problem = decode(data)
	if problem != "" {
		return nil, nil, problem
	}
	switch {
	case doc.Metadata.Name != c.device:
		return nil, nil, fmt.Sprintf("it is for device %q, this one is %q", doc.Metadata.Name, c.device)
	case doc.Generation < 1:
		return nil, nil, fmt.Sprintf("generation %d is none", doc.Generation)
	case doc.Generation < c.generation:
		return nil, nil, fmt.Sprintf("generation %d is older than %d, which was read before", doc.Generation, c.generation)
	case doc.Spec == nil:
		return doc, nil, ""
	case doc.Recalled != 0 || doc.Removed:
		return nil, nil, "it carries a spec and takes one back at once"
	case doc.Attempt < 1:
		return nil, nil, fmt.Sprintf("it carries a spec without an attempt (%d)", doc.Attempt)
	}
	digest, err := schema.Digest(doc.Spec)
	if err != nil {
		return nil, nil, err.Error()
	}
	if digest != doc.Digest {
		return nil, nil, fmt.Sprintf("its spec has digest %s, not %s", digest, doc.Digest)
	}
	payloads = map[string][]byte{}
	for _, name := range schema.PayloadNames(doc.Spec) {
		hex, ok := strings.CutPrefix(name, "sha256:")
		if !ok || !sha256Hex.MatchString(hex) {
			return nil, nil, fmt.Sprintf("it names payload %q, which is no digest", name)
		}
		data, ok := files[payloadFolder+hex]
		switch {
		case !ok:
			return nil, nil, fmt.Sprintf("payload %s is missing", name)
		case data == nil && c.kept != nil:
			continue // the device has it
		case schema.PayloadDigest(data) != name:
			return nil, nil, fmt.Sprintf("payload %s has other content", name)
		}
		payloads[name] = data
	}
	return doc, payloads, ""
}

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

// decode reads the document strictly: a device must not do half of what it was
// told. Where only its spec is not understood, it is read without that check:
// its digest still has to be right, and the attempt can then be refused. What
// a newer daemon says more of why it decided so changes nothing of what to do.
func decode(data []byte) (*schema.Assignment, string) {
	var doc schema.Assignment
	var wrong, outside []string
	inSpec := false
	for _, p := range schema.Decode(assignmentFile, data, &doc) {
		if p.Severity != schema.SeverityError {
			continue
		}
		text := p.Message
		if p.Pointer != "" {
			text = p.Pointer + ": " + text
		}
		wrong = append(wrong, text)
		switch {
		case strings.HasPrefix(p.Pointer, "/spec/"):
			inSpec = true
		case strings.HasPrefix(p.Pointer, "/because/") && p.Rule == unknownField:
		default:
			outside = append(outside, text)
		}
	}
	if len(wrong) == 0 {
		return &doc, ""
	}
	if len(outside) == 0 {
		if loose, err := decodeLoosely(data); err == nil && (loose.Spec != nil || !inSpec) {
			return loose, ""
		}
		outside = wrong
	}
	more := ""
	if len(outside) > maxTold {
		more = fmt.Sprintf(" and %d more", len(outside)-maxTold)
		outside = outside[:maxTold]
	}
	return nil, assignmentFile + ": " + strings.Join(outside, "; ") + more
}

// unknownField is the rule of a field that this program does not have.
const unknownField = "unknown-field"

func decodeLoosely(data []byte) (*schema.Assignment, error) {
	plain, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, err
	}
	var doc schema.Assignment
	if err := json.Unmarshal(plain, &doc); err != nil {
		return nil, err
	}
	return &doc, nil
}
