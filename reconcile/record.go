package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/schema"
)

// whole reads a record with its spec.
func (s *store) whole(p string) (record, error) {
	var r record
	b, err := s.bytes(p)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		err = fmt.Errorf("read %s: %w", p, err)
		if !errors.Is(err, fs.ErrNotExist) && !disk.Short(err) {
			if aside := s.moveAside(p); aside != nil {
				err = fmt.Errorf("%w; %w", err, aside)
			}
		}
		return r, err
	}
	return r, nil
}

// tree is the spec of a record as it was assigned.
func (r *record) tree() (map[string]any, error) {
	if len(r.Spec) == 0 {
		return nil, nil
	}
	var t map[string]any
	if err := json.Unmarshal(r.Spec, &t); err != nil {
		return nil, fmt.Errorf("decode the spec of %s: %w", r.Version, err)
	}
	return t, nil
}

func (r *record) spec() (*schema.Spec, error) {
	t, err := r.tree()
	if err != nil {
		return nil, err
	}
	if t == nil {
		return &schema.Spec{}, nil
	}
	sp, err := schema.DecodeSpec(t)
	if err != nil {
		return nil, fmt.Errorf("decode the spec of %s: %w", r.Version, err)
	}
	return sp, nil
}

// currentSpec is what the device should be when nothing is on its way; empty
// before the first release.
func (s *store) currentSpec() (*schema.Spec, error) {
	r, err := s.whole(currentFile)
	if err != nil {
		return nil, err
	}
	return r.spec()
}

func (s *store) desiredRecord() (record, *schema.Spec, error) {
	r, err := s.whole(desiredFile)
	if err != nil {
		return r, nil, err
	}
	sp, err := r.spec()
	return r, sp, err
}
