package listing

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/schema"
)

// linesLimit is how large a file is that lines are shown of, in bytes: no
// document and no template may be larger.
const linesLimit = 1 << 20

// Lines gives the lines of a fleet's files. It keeps one file, because
// problems are sorted by file.
type Lines struct {
	src     schema.Source
	entries []schema.Entry // by path
	file    string
	lines   []string
}

// NewLines reads from a source what its entries name, which are sorted by path.
func NewLines(src schema.Source, entries []schema.Entry) *Lines {
	return &Lines{src: src, entries: entries}
}

// at is a line of a file, counted from 1. There is none of a file that cannot
// be read or is binary: a listing is whole without it.
func (l *Lines) at(file string, line int) (string, bool) {
	if l == nil || line < 1 {
		return "", false
	}
	if l.file != file {
		l.file, l.lines = file, nil
		i, known := slices.BinarySearchFunc(l.entries, file, func(e schema.Entry, path string) int { return strings.Compare(e.Path, path) })
		if !known {
			return "", false
		}
		data, err := l.src.Read(l.entries[i], linesLimit)
		if err != nil || !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
			return "", false
		}
		l.lines = strings.Split(string(data), "\n")
	}
	if line > len(l.lines) {
		return "", false
	}
	return strings.TrimSuffix(l.lines[line-1], "\r"), true
}

var (
	// named is a key wherever in a line it stands, keyed a line that begins with
	// one: both by their looks, because what is read here may be no YAML.
	named = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_.-]*)["']?\s*:`)
	keyed = regexp.MustCompile(`^[ \t]*(?:- +)*["']?[^\s"':#{\[][^"':]*["']?:(?:\s|$)`)
)

// secretReach is how many lines above one may be its key: more than the longest
// secret of a spec has. What lies deeper is not shown.
const secretReach = 2000

// secret says whether a line of the file that was asked for last stands under
// the name of a secret: in the line of the key, or below it. As the indentation
// may be what is wrong, what has no key belongs to the nearest one above.
func (l *Lines) secret(line int) bool {
	text := l.lines[line-1]
	if namesSecret(text) {
		return true
	}
	indent, has := indentOf(text), keyed.MatchString(text)
	for i := line - 2; i >= 0 && (indent > 0 || !has); i-- {
		at := indentOf(l.lines[i])
		switch {
		case has && at >= indent:
		case line-i > secretReach, namesSecret(l.lines[i]):
			return true
		case keyed.MatchString(l.lines[i]):
			indent, has = min(at, indent), true
		}
	}
	return false
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

func namesSecret(line string) bool {
	return slices.ContainsFunc(named.FindAllStringSubmatch(line, -1), func(m []string) bool { return schema.SecretLike(m[1], "x") })
}
