package repo

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

// errMissing says that an object is not there.
var errMissing = errors.New("object not found")

// Modes of tree entries.
const (
	modeTree    = 0o040000
	modeFile    = 0o100644
	modeExec    = 0o100755
	modeSymlink = 0o120000
	modeGitlink = 0o160000
)

type treeEntry struct {
	name string
	mode uint32
	id   oid
}

// key is what git sorts entries by: a tree as if its name ended with a slash.
func (e treeEntry) key() string {
	if e.mode == modeTree {
		return e.name + "/"
	}
	return e.name
}

// maxTreeEntries bounds one folder; git has no bound, but a hostile tree is
// best refused before it is held in memory.
const maxTreeEntries = 2 << 20

// parseTree reads a tree. Names that a path must not hold are refused, so
// that whoever writes them to a disk stays below its root.
func parseTree(data []byte) ([]treeEntry, error) {
	entries := make([]treeEntry, 0, len(data)/40)
	last := ""
	for len(data) > 0 {
		space := bytes.IndexByte(data, ' ')
		nul := bytes.IndexByte(data, 0)
		if space < 1 || nul < space || len(data) < nul+21 {
			return nil, fail(kindCorrupt, "a tree that cannot be read")
		}
		mode, err := strconv.ParseUint(string(data[:space]), 8, 32)
		if err != nil {
			return nil, fail(kindCorrupt, "a tree with the mode %q", sanitize(string(data[:space]), 20))
		}
		e := treeEntry{name: string(data[space+1 : nul]), mode: normalMode(uint32(mode))}
		copy(e.id[:], data[nul+1:])
		data = data[nul+21:]
		if err := validName(e.name); err != nil {
			return nil, err
		}
		if e.mode == 0 {
			return nil, fail(kindCorrupt, "a tree with the mode %o for %q", mode, sanitize(e.name, 100))
		}
		// Strictly rising keys also mean that no name comes twice.
		if k := e.key(); last != "" && k <= last {
			return nil, fail(kindCorrupt, "a tree that is not sorted at %q", sanitize(e.name, 100))
		} else {
			last = k
		}
		// A file and a folder of one name have different keys; between them
		// lie only names that begin with it.
		for i := len(entries) - 1; e.mode == modeTree && i >= 0 && strings.HasPrefix(entries[i].name, e.name); i-- {
			if entries[i].name == e.name {
				return nil, fail(kindCorrupt, "a tree that has %q twice", sanitize(e.name, 100))
			}
		}
		if entries = append(entries, e); len(entries) > maxTreeEntries {
			return nil, fail(kindCorrupt, "a folder with more than %d entries", maxTreeEntries)
		}
	}
	return entries, nil
}

// normalMode maps the modes of old git versions to today's; 0 = unknown.
func normalMode(m uint32) uint32 {
	switch m & 0o170000 {
	case modeTree, modeSymlink, modeGitlink:
		return m & 0o170000
	case 0o100000:
		if m&0o111 != 0 {
			return modeExec
		}
		return modeFile
	}
	return 0
}

// validName tells whether a name may be part of a path.
func validName(name string) error {
	switch {
	case name == "", name == ".", name == "..", strings.ContainsAny(name, "/\x00"):
		return fail(kindCorrupt, "the name %q is not allowed in a tree", sanitize(name, 100))
	case strings.EqualFold(name, ".git"):
		return fail(kindCorrupt, "the name %q is not allowed in a tree", sanitize(name, 100))
	}
	return nil
}

func encodeTree(entries []treeEntry) []byte {
	sort.Slice(entries, func(i, j int) bool { return entries[i].key() < entries[j].key() })
	var b bytes.Buffer
	b.Grow(len(entries) * 48)
	for _, e := range entries {
		fmt.Fprintf(&b, "%o %s\x00", e.mode, e.name)
		b.Write(e.id[:])
	}
	return b.Bytes()
}

type commit struct {
	tree    oid
	parents []oid
	author  string    // "Name <mail>"
	when    time.Time // of the committer: what history is sorted by
	message string
}

// parseCommit reads what is needed of a commit.
func parseCommit(data []byte) (*commit, error) {
	head, message, _ := strings.Cut(string(data), "\n\n")
	c := &commit{message: message}
	for i, line := range strings.Split(head, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case i == 0:
			if word != "tree" {
				return nil, fail(kindCorrupt, "a commit without a tree")
			}
			id, err := parseOID(rest)
			if err != nil {
				return nil, err
			}
			c.tree = id
		case word == "parent":
			id, err := parseOID(rest)
			if err != nil {
				return nil, err
			}
			c.parents = append(c.parents, id)
		case word == "author" && c.author == "":
			c.author, _ = parseIdent(rest)
		case word == "committer" && c.when.IsZero():
			_, c.when = parseIdent(rest)
		}
	}
	if c.tree.IsZero() {
		return nil, fail(kindCorrupt, "a commit without a tree")
	}
	return c, nil
}

// parseIdent reads "Name <mail> seconds zone"; what cannot be read is left out.
func parseIdent(s string) (who string, when time.Time) {
	end := strings.LastIndexByte(s, '>')
	if end < 0 {
		return s, time.Unix(0, 0).UTC()
	}
	who = s[:end+1]
	when = time.Unix(0, 0).UTC()
	if f := strings.Fields(s[end+1:]); len(f) > 0 {
		// Absurd times would overflow what callers compute with them.
		if n, err := strconv.ParseInt(f[0], 10, 64); err == nil && n > 0 && n < 1<<40 {
			when = time.Unix(n, 0).UTC()
		}
	}
	return who, when
}

// Author is who commits; an empty field stands for gitopsd.
type Author struct{ Name, Email string }

// ident is the line of a commit; characters that would end a field are left out.
func (a Author) ident(when time.Time) string {
	clean := func(s string) string {
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if r < ' ' || r == '<' || r == '>' || r == 0x7f {
				return -1
			}
			return r
		}, s))
	}
	name, email := clean(a.Name), clean(a.Email)
	if name == "" {
		name = orphanAuthor.Name
	}
	if email == "" {
		email = orphanAuthor.Email
	}
	return fmt.Sprintf("%s <%s> %d +0000", name, email, max(when.Unix(), 0))
}

func encodeCommit(tree oid, parents []oid, who Author, when time.Time, message string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	id := who.ident(when)
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n", id, id)
	message = strings.TrimRight(strings.ReplaceAll(message, "\x00", ""), "\n")
	b.WriteString(message + "\n")
	return b.Bytes()
}

// orphanAuthor, its time and its message never change: the same files always
// give the same commit.
var orphanAuthor = Author{Name: "gitopsd", Email: "gitopsd@localhost"}

const orphanMessage = "gitopsd"

func encodeOrphan(tree oid) []byte {
	return encodeCommit(tree, nil, orphanAuthor, time.Unix(0, 0), orphanMessage)
}
