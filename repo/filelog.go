package repo

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"
)

// FileLog goes back through the history of one file, by first parents: it is
// for a branch whose history is one line, as a status branch's is. Each commit
// is looked at once, and of each only the folders on the way to the file,
// unless they are those of the commit before. Start with [Repo.FileLog]; it is
// not for several goroutines at once.
type FileLog struct {
	repo  *Repo
	at    oid // the commit to look at next; zero = the history has ended
	cut   bool
	looks int
	last  trail
}

// FileChange is a commit that changed what stands at a path.
type FileChange struct {
	Commit string
	Parent string // "" = it is the first, or the one before is not here
	Author string // "Name <mail>"
	Time   time.Time
	// Old and New are what stood there before and after: a blob, or "" for
	// nothing, also where a folder stands.
	Old, New string
}

// FileLog starts at a commit that was fetched with its history.
func (r *Repo) FileLog(tip string) (*FileLog, error) {
	id, err := parseOID(tip)
	if err != nil {
		return nil, r.wrap("log", tip, err)
	}
	return &FileLog{repo: r, at: id}, nil
}

// Looks is how many commits were looked at.
func (l *FileLog) Looks() int { return l.looks }

// Cut says that the history ended where a shallow clone was cut off.
func (l *FileLog) Cut() bool { return l.cut }

// Next goes back to the next commit that changed what stands at a path; nil
// where the history ends first, or where further, asked about each commit that
// did not, says so. The path may be another one each time, because files move.
func (l *FileLog) Next(ctx context.Context, path string, further func(commit string, when time.Time) bool) (*FileChange, error) {
	change, err := l.next(ctx, strings.Split(path, "/"), further)
	return change, l.repo.wrap("log", path, err)
}

func (l *FileLog) next(ctx context.Context, path []string, further func(string, time.Time) bool) (*FileChange, error) {
	if l.at.IsZero() {
		return nil, nil
	}
	c, err := l.repo.commit(ctx, l.at)
	if err != nil {
		return nil, err
	}
	is, err := l.entry(ctx, c.tree, path)
	if err != nil {
		return nil, err
	}
	for {
		l.looks++
		id, here := l.at, c
		was := zero
		l.at = zero
		if len(c.parents) > 0 {
			parent, err := l.repo.commit(ctx, c.parents[0])
			switch {
			case err == nil:
				l.at, c = here.parents[0], parent
				if was, err = l.entry(ctx, c.tree, path); err != nil {
					return nil, err
				}
			case errors.Is(err, errMissing) && l.repo.IsShallow():
				l.cut = true
				return nil, nil // what this commit changed cannot be told
			default:
				return nil, err
			}
		}
		if is != was {
			return &FileChange{
				Commit: id.String(), Parent: optional(l.at), Author: here.author, Time: here.when, Old: optional(was), New: optional(is),
			}, nil
		}
		if l.at.IsZero() || further != nil && !further(id.String(), here.when) {
			return nil, nil
		}
	}
}

// FileAt is the blob that stands at a path of a commit, "" where none does.
func (r *Repo) FileAt(ctx context.Context, commit, path string) (string, error) {
	id, err := parseOID(commit)
	if err != nil {
		return "", r.wrap("read", commit, err)
	}
	c, err := r.commit(ctx, id)
	if err != nil {
		return "", r.wrap("read", commit, err)
	}
	found, err := (&FileLog{repo: r}).entry(ctx, c.tree, strings.Split(path, "/"))
	return optional(found), r.wrap("read", path, err)
}

// trail is the way to a file in the tree that was looked at last: a folder
// that is the same again holds the same.
type trail struct {
	names   []string
	folders []oid // folders[i] holds names[i]
	found   oid
}

// entry finds a file; zero = there is none.
func (l *FileLog) entry(ctx context.Context, tree oid, names []string) (oid, error) {
	if len(names) > maxDepth {
		return zero, fail(kindRefused, "the path is deeper than %d folders", maxDepth)
	}
	now := trail{names: names, folders: make([]oid, 0, len(names))}
	at := tree
	for i, name := range names {
		if l.last.holds(names, i, at) {
			now.folders = append(now.folders, l.last.folders[i:]...)
			now.found = l.last.found
			l.last = now
			return now.found, nil
		}
		now.folders = append(now.folders, at)
		data, err := l.repo.get(ctx, at, typeTree)
		if err != nil {
			return zero, err
		}
		id, mode, err := findEntry(data, name)
		if err != nil {
			return zero, err
		}
		isFolder := mode == modeTree
		if i == len(names)-1 && mode != 0 && !isFolder {
			now.found = id
		}
		if !isFolder || i == len(names)-1 {
			break
		}
		at = id
	}
	l.last = now
	return now.found, nil
}

// holds says whether the same file was looked for in the same folder.
func (t *trail) holds(names []string, i int, folder oid) bool {
	if i >= len(t.folders) || t.folders[i] != folder || len(t.names) != len(names) {
		return false
	}
	for k := i; k < len(names); k++ {
		if t.names[k] != names[k] {
			return false
		}
	}
	return true
}

// findEntry finds a name in a tree without making a list of it: a history is
// read with many trees, and of each one name counts. Mode 0 = it is not there.
func findEntry(data []byte, name string) (oid, uint32, error) {
	for len(data) > 0 {
		space := bytes.IndexByte(data, ' ')
		nul := bytes.IndexByte(data, 0)
		if space < 1 || nul < space || len(data) < nul+21 {
			return zero, 0, fail(kindCorrupt, "a tree that cannot be read")
		}
		if string(data[space+1:nul]) == name {
			entries, err := parseTree(data[:nul+21])
			if err != nil {
				return zero, 0, err
			}
			return entries[0].id, entries[0].mode, nil
		}
		data = data[nul+21:]
	}
	return zero, 0, nil
}
