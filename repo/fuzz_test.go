package repo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// What a server sends must never panic, hang or take memory without bound;
// what is accepted must be consistent.

var fuzzLimits = packLimits{packBytes: 1 << 20, objects: 1000, objectSize: 1 << 16, totalSize: 1 << 20}

func samplePack(t testing.TB, thin bool) ([]byte, []outObject) {
	t.Helper()
	base := []byte(strings.Repeat("a line of a tree\n", 40))
	next := append(append([]byte(nil), base...), "one more\n"...)
	objs := []outObject{
		{id: hashObject(typeBlob, base), typ: typeBlob, data: base},
		{id: hashObject(typeBlob, next), typ: typeBlob, data: next, base: hashObject(typeBlob, base), baseData: base},
	}
	if thin {
		objs = objs[1:]
	}
	var b bytes.Buffer
	if _, err := writePack(&b, objs); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), objs
}

func FuzzReadPack(f *testing.F) {
	whole, _ := samplePack(f, false)
	thin, _ := samplePack(f, true)
	f.Add(whole)
	f.Add(thin)
	f.Add([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"))
	base := []byte(strings.Repeat("a line of a tree\n", 40))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := readPack(bytes.NewReader(data), &memoryPack{}, fuzzLimits, func(id oid) (objectType, []byte, error) {
			if id != hashObject(typeBlob, base) {
				return 0, nil, errMissing
			}
			return typeBlob, base, nil
		})
		if err != nil {
			return
		}
		for id := range p.byID {
			typ, content, err := p.object(id)
			if err != nil {
				t.Fatalf("object %s of an accepted pack: %v", id, err)
			}
			if got := hashObject(typ, content); got != id {
				t.Fatalf("object %s holds %s", id, got)
			}
		}
	})
}

func TestPackSurvivesItself(t *testing.T) {
	for _, thin := range []bool{false, true} {
		data, objs := samplePack(t, thin)
		base := []byte(strings.Repeat("a line of a tree\n", 40))
		file := &memoryPack{}
		p, err := readPack(bytes.NewReader(data), file, fuzzLimits, func(id oid) (objectType, []byte, error) { return typeBlob, base, nil })
		if err != nil {
			t.Fatal(err)
		}
		if len(p.entries) != 2 {
			t.Fatalf("thin %v: %d objects, want 2: a thin pack is completed", thin, len(p.entries))
		}
		for _, o := range objs {
			if _, got, err := p.object(o.id); err != nil || !bytes.Equal(got, o.data) {
				t.Fatalf("object %s: %q, %v", o.id, got, err)
			}
		}
		// What was completed is a pack like any other.
		if again, err := readPack(bytes.NewReader(file.data), &memoryPack{}, fuzzLimits, nil); err != nil || again.sum != p.sum {
			t.Fatalf("thin %v: reading the completed pack: %v", thin, err)
		}
		// Cut anywhere it is an error, and so is one flipped byte.
		for n := range data {
			if _, err := readPack(bytes.NewReader(data[:n]), &memoryPack{}, fuzzLimits, nil); err == nil {
				t.Fatalf("a pack cut after %d bytes was accepted", n)
			}
			bad := append([]byte(nil), data...)
			bad[n] ^= 0x10
			if _, err := readPack(bytes.NewReader(bad), &memoryPack{}, fuzzLimits, nil); err == nil {
				t.Fatalf("a pack with byte %d flipped was accepted", n)
			}
		}
	}
}

func TestPackLimits(t *testing.T) {
	big := bytes.Repeat([]byte{0}, 1<<20)
	var b bytes.Buffer
	if _, err := writePack(&b, []outObject{{id: hashObject(typeBlob, big), typ: typeBlob, data: big}}); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]packLimits{
		"object size": {objectSize: 1 << 16},
		"total size":  {totalSize: 1 << 16},
		"pack size":   {packBytes: 10},
	} {
		if _, err := readPack(bytes.NewReader(b.Bytes()), &memoryPack{}, l, nil); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: got %v, want the limit", name, err)
		}
	}
	// A delta of some bytes that claims a gigabyte.
	delta := append([]byte{1}, 0x80, 0x80, 0x80, 0x80, 0x04)
	if _, err := applyDelta([]byte("x"), delta, 1<<20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a delta with a huge result: got %v, want the limit", err)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte("001e# service=git-upload-pack\n0000000eversion 2\n0013ls-refs=unborn\n0000"))
	f.Add([]byte("0050" + strings.Repeat("a", 40) + " refs/heads/main\x00side-band-64k symref=HEAD:x\n0000"))
	f.Add([]byte("003d" + strings.Repeat("a", 40) + " refs/heads/main\n0000"))
	f.Add([]byte("000eunpack ok\n0019ok refs/heads/main\n0000"))
	f.Add([]byte("000dpackfile\n0006\x01a0000"))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all := func(string) bool { return true }
		parse := []func(p *pktReader) error{
			func(p *pktReader) error { _, err := readAdvert(p, "", all, true); return err },
			func(p *pktReader) error { _, err := readAdvert(p, serviceFetch, all, true); return err },
			func(p *pktReader) error {
				l, err := readLsRefs(p, all)
				if err == nil {
					for name := range l.refs {
						if validRef(name) != nil {
							t.Fatalf("the ref name %q was let through", name)
						}
					}
				}
				return err
			},
			func(p *pktReader) error {
				return readFetch2(p, func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err })
			},
			func(p *pktReader) error {
				caps := capabilities{"side-band-64k": "", "shallow": ""}
				return readFetch0(p, &fetchRequest{depth: 1}, caps, func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err })
			},
		}
		for _, fn := range parse {
			_ = fn(newPktReader(bytes.NewReader(data)))
		}
		for _, caps := range []capabilities{{}, {"side-band-64k": ""}} {
			if res, err := readPush(bytes.NewReader(data), caps); err == nil && res.unpack == "" {
				t.Fatal("a report without a verdict was accepted")
			}
		}
	})
}

func FuzzObjects(f *testing.F) {
	f.Add([]byte("100644 a\x00" + strings.Repeat("x", 20)))
	f.Add([]byte("tree " + strings.Repeat("a", 40) + "\nauthor A <a@b> 1 +0000\n\nhi\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if entries, err := parseTree(data); err == nil {
			for _, e := range entries {
				if validName(e.name) != nil {
					t.Fatalf("the name %q was let through", e.name)
				}
			}
			if again, err := parseTree(encodeTree(entries)); err != nil || len(again) != len(entries) {
				t.Fatalf("a tree does not survive: %v", err)
			}
		}
		_, _ = parseCommit(data)
		_, _ = applyDelta([]byte("some base"), data, 1<<16)
	})
}

// TestTreeBomb walks a small tree that names itself ten to the power of
// twelve times.
func TestTreeBomb(t *testing.T) {
	objs := map[oid][]byte{}
	leaf := treeEntry{mode: modeFile, id: hashObject(typeBlob, nil)}
	for range 12 {
		var entries []treeEntry
		for _, n := range "0123456789" {
			e := leaf
			e.name = string(n)
			entries = append(entries, e)
		}
		data := encodeTree(entries)
		id := hashObject(typeTree, data)
		objs[id] = data
		leaf = treeEntry{mode: modeTree, id: id}
	}
	w := &walker{get: func(_ context.Context, id oid, _ objectType) ([]byte, error) { return objs[id], nil }}
	err := w.walk(context.Background(), leaf.id, "", 0, func(string, treeEntry) error { return nil })
	if !hasKind(err, kindCorrupt) {
		t.Fatalf("got %v, want an error of the kind corrupt", err)
	}
}

// Few entries below folders of long names are as many bytes as millions.
func TestTreeBombOfLongPaths(t *testing.T) {
	objs := map[oid][]byte{}
	folder := func(id oid, mode uint32, names ...string) oid {
		var entries []treeEntry
		for _, n := range names {
			entries = append(entries, treeEntry{name: n, mode: mode, id: id})
		}
		data := encodeTree(entries)
		made := hashObject(typeTree, data)
		objs[made] = data
		return made
	}
	ten := strings.Split("0123456789", "")
	id, mode := hashObject(typeBlob, nil), uint32(modeFile)
	for range 5 {
		id, mode = folder(id, mode, ten...), modeTree
	}
	for range 40 {
		id = folder(id, mode, strings.Repeat("n", 250))
	}
	told := 0
	w := &walker{get: func(_ context.Context, id oid, _ objectType) ([]byte, error) { return objs[id], nil }}
	err := w.walk(context.Background(), id, "", 0, func(path string, _ treeEntry) error { told += len(path); return nil })
	if !hasKind(err, kindCorrupt) || told > maxPaths {
		t.Fatalf("%d bytes of paths and %v, want an error of the kind corrupt before so many", told, err)
	}
}

func TestHostileTrees(t *testing.T) {
	id := strings.Repeat("x", 20)
	for name, data := range map[string]string{
		"a slash":       "100644 a/b\x00" + id,
		"dot dot":       "40000 ..\x00" + id,
		"dot":           "100644 .\x00" + id,
		"no name":       "100644 \x00" + id,
		"git folder":    "40000 .GIT\x00" + id,
		"twice":         "100644 a\x00" + id + "100644 a\x00" + id,
		"file and tree": "100644 a\x00" + id + "100644 a.b\x00" + id + "40000 a\x00" + id,
		"not sorted":    "100644 b\x00" + id + "100644 a\x00" + id,
		"cut":           "100644 a\x00" + id[:10],
		"odd mode":      "777 a\x00" + id,
	} {
		if _, err := parseTree([]byte(data)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
