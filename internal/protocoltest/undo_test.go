package protocoltest

import (
	"regexp"
	"strings"
	"time"
)

// undoWithin is how soon after a commit another must not take it back, where
// nothing is heard between them: no freeze, window or soak is so short.
const undoWithin = time.Minute

// moving are the lines of documents that say when something was written down.
var moving = regexp.MustCompile(`(?m)^\s*(sweptAt|since|sequence): .*\n`)

// written is one commit of the status branch.
type written struct {
	blobs map[string]string // path → blob
	at    time.Time
	news  int // that had come when the pass began; -1 = it is not known
}

// undo holds that no commit takes back what the one before it wrote, if
// nothing has happened that both daemons did not know: they would take turns.
type undo struct{ last, before written }

func (u *undo) committed(g *ghost, by *daemon, blobs map[string]string) {
	now := written{blobs: blobs, at: g.w.now, news: -1}
	if by != nil && g.inStep() {
		now.news = by.news
	}
	before, last := u.before, u.last
	u.before, u.last = last, now
	if now.news < 0 || last.news != g.news || now.news != g.news || before.blobs == nil || now.at.Sub(last.at) > undoWithin {
		return
	}
	for path, blob := range blobs {
		was := before.blobs[path]
		if was == "" || last.blobs[path] == blob || last.blobs[path] == "" {
			continue
		}
		if is := g.still(blob); is == g.still(was) && is != g.still(last.blobs[path]) {
			g.w.logf("-- %s was\n%s-- and is\n%s", path, g.git.Content(last.blobs[path]), g.git.Content(blob))
			g.violate("undo: %s is as it was before the last commit, and nothing has happened since", path)
			return
		}
	}
}

// still is a document without the lines that move by themselves.
func (g *ghost) still(blob string) string {
	return strings.TrimSpace(moving.ReplaceAllString(string(g.git.Content(blob)), ""))
}

// inStep says whether all daemons see one time.
func (g *ghost) inStep() bool {
	for _, d := range g.w.daemons {
		if d.skew != 0 {
			return false
		}
	}
	return true
}
