package repo

import (
	"context"
	"io"
)

// noContent is a filter: folders and their names, and no files.
const noContent = "blob:none"

// spare gives the paths whose content need not come; nil = all has to, because
// the caller has nothing or the server cannot leave anything out.
func spare(l *listing, known func() []string) map[string]bool {
	if known == nil || !l.v2 || !l.caps.feature("fetch", "filter") {
		return nil
	}
	paths := known()
	if len(paths) == 0 {
		return nil // it would be a request more
	}
	spared := map[string]bool{}
	for _, p := range paths {
		spared[p] = true
	}
	return spared
}

// readRest reads what is missing of a commit whose folders are in a pack, but
// for what is spared.
func (d *Device) readRest(ctx context.Context, folders *packData, id oid, limit int64, spared map[string]bool) (map[string][]byte, error) {
	var wants []oid
	asked := map[oid]bool{}
	_, err := tipFiles(ctx, folders.typed, id, limit, func(path string, blob oid) bool {
		if !spared[path] && !asked[blob] {
			asked[blob] = true
			wants = append(wants, blob)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	var content *packData
	if len(wants) > 0 {
		err = d.remote.upload(ctx, question{byHash: true}, func(*listing) (*fetchRequest, error) {
			return &fetchRequest{wants: wants}, nil
		}, func(r io.Reader) (err error) {
			content, err = readPack(r, &memoryPack{}, tipLimits(limit, 1), nil)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	get := func(ctx context.Context, id oid, typ objectType, limit int64) ([]byte, error) {
		if _, there := folders.byID[id]; !there && content != nil {
			return content.typed(ctx, id, typ, limit)
		}
		return folders.typed(ctx, id, typ, limit)
	}
	return tipFiles(ctx, get, id, limit, func(path string, _ oid) bool { return spared[path] })
}
