package schema

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// maxRootDocuments is how many files of the root are looked into with every
// load; who has more of them has no fleet repository of his own.
const maxRootDocuments = 50

// Of a document these two are looked for, at the beginning of a line: other
// programs keep their files at the root too, and those are not ours to judge.
var (
	ourVersion = regexp.MustCompile(`(?m)^apiVersion: +["']?gitopsd\.dev/`)
	fleetKind  = regexp.MustCompile(`(?m)^kind: +["']?(Policy|Release|Overlay|Device|Fleet)["']?\s*(?:#|$)`)
)

// rootDocument tells of a file of the root that is a document of the fleet and
// has no effect there.
func (p *pass) rootDocument(e *Entry) error {
	if strings.Contains(e.Path, "/") || strings.HasPrefix(e.Path, ".") || !isDocumentName(e.Path) || !isRegular(e.Mode) {
		return nil
	}
	if p.atRoot++; p.atRoot > maxRootDocuments {
		return nil
	}
	data, err := p.src.Read(*e, maxDocument)
	if errors.Is(err, ErrTooLarge) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", clip(e.Path), err)
	}
	m := fleetKind.FindSubmatch(data)
	if m == nil || !ourVersion.Match(data) {
		return nil
	}
	p.fileProblem(e.Path, ruleMisplaced, "nothing is read from the root but fleet.yaml", homeOf(Kind(m[1])))
	return nil
}
