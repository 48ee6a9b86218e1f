package sweep

import (
	"context"
	"fmt"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// expected is the commit that the device's delivery ref should be at.
func (p *pass) expected(ctx context.Context, rec *Record) (string, error) {
	if rec.delivery != "" {
		return rec.delivery, nil
	}
	commit, err := p.deliver(ctx, rec.payloads, assignedPath(rec.Path), p.status.blob)
	if err != nil {
		return "", err
	}
	rec.delivery = commit
	return commit, nil
}

// deliver makes the commit of a delivery from blobs of the status branch, by
// path.
func (p *pass) deliver(ctx context.Context, payloads []string, assigned string, blob func(path string) string) (string, error) {
	files, err := deliveryFiles(payloads, assigned, blob)
	if err != nil {
		return "", err
	}
	commit, err := p.d.cfg.Remote.Orphan(ctx, files)
	if err != nil {
		return "", fmt.Errorf("build the delivery of %s: %w", assigned, err)
	}
	return commit, nil
}

// deliveryFiles are the blobs of a delivery by their paths in it.
func deliveryFiles(payloads []string, assigned string, blob func(path string) string) (map[string]string, error) {
	files := map[string]string{assignmentFile: blob(assigned)}
	for _, digest := range payloads {
		from := payloadPath(digest)
		if blob(from) == "" {
			return nil, &unreadable{path: assigned, why: "it names " + from + ", which is not there"}
		}
		files[payloadsDir+strings.TrimPrefix(digest, digestPrefix)] = blob(from)
	}
	return files, nil
}

// deliveredGenerations reads what the differing refs carry; what cannot be
// understood has no generation, and what cannot be read is blind.
func (p *pass) deliveredGenerations(ctx context.Context, wrong []string, values map[string]string) (generations map[string]int64, blind map[string]bool, err error) {
	docs, err := p.readDeliveries(ctx, wrong, values)
	if err != nil {
		return nil, nil, err
	}
	generations, blind = map[string]int64{}, map[string]bool{}
	for id, a := range docs {
		if a == nil {
			blind[id] = true
		} else {
			generations[id] = a.Generation
		}
	}
	return generations, blind, nil
}

// readDeliveries reads the assignments that stand at delivery refs; nil is one
// whose commit could not be read.
func (p *pass) readDeliveries(ctx context.Context, ids []string, values map[string]string) (map[string]*schema.Assignment, error) {
	tips := map[string]string{}
	for _, id := range ids {
		if values[id] != "" {
			tips[p.d.cfg.DeviceRefs+id] = values[id]
		}
	}
	if len(tips) == 0 {
		return nil, nil
	}
	contents, err := p.d.cfg.Remote.Tips(ctx, tips, maxDelivery)
	if err != nil {
		return nil, fmt.Errorf("read %d deliveries: %w", len(tips), err)
	}
	docs := map[string]*schema.Assignment{}
	for ref, files := range contents {
		id := strings.TrimPrefix(ref, p.d.cfg.DeviceRefs)
		a := &schema.Assignment{}
		if files == nil {
			docs[id] = nil
		} else if err := decodeStatus(ref, files[assignmentFile], a); err == nil && a.Metadata.Name == id && badNumber(saneNumber, a) == "" {
			docs[id] = a
		}
	}
	return docs, nil
}
