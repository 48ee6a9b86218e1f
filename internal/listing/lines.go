package listing

import (
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
