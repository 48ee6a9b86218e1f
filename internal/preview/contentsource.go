package preview

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
)

// source is the content of one file on one side.
type source struct {
	size int64 // -1 = there is none
	data []byte
	read bool
	err  error
}

// content compares the content of a file; nil where it is the same.
func (c *comparison) content(at string, a, b element) *Content {
	from, fromKey := contentOf(a, c.from)
	to, toKey := contentOf(b, c.to)
	if fromKey == toKey {
		return nil
	}
	key := contentKey{file: b.orName(a), from: fromKey, to: toKey, mask: c.mask.key()}
	var written *literal
	if c.literal != nil {
		written = c.literal(at)
		key.written = written.writtenAt
	}
	if known, is := c.contents.seen[key]; is {
		return known
	}
	if from.sealed || to.sealed {
		return &Content{From: from.size, To: to.size, Lines: []Line{}, Hidden: "it is encrypted"}
	}
	if c.contents.tooMuch(from, to) {
		return &Content{From: from.size, To: to.size, Lines: []Line{}, Hidden: "there is more than is looked into"}
	}
	c.contents.left -= from.load(c.from) + to.load(c.to)
	var change *Content
	if !from.read || !to.read || from.err != nil || to.err != nil || !bytes.Equal(from.data, to.data) { // else written in another way
		change = contentChange(key.file, from.source, to.source, c.mask, written, c.lines)
	}
	c.contents.seen[key] = change
	return change
}

// mostCompared is how many bytes of contents one comparison looks into: some
// seconds' worth. What is beyond is told by its size.
const mostCompared = 32 << 20

// contents are those that were compared already, for whichever device, and what
// may still be looked into.
type contents struct {
	seen map[contentKey]*Content
	left int64 // bytes
}

// contentKey is what a change of a content depends on.
type contentKey struct {
	file, from, to, mask string
	written              writtenAt
}

func newContents() *contents { return &contents{seen: map[contentKey]*Content{}, left: mostCompared} }

// tooMuch takes the sizes of two contents from what may be looked into, and says
// whether that is used up.
func (c *contents) tooMuch(from, to pending) bool {
	for _, p := range []pending{from, to} {
		if p.size <= largestRead {
			c.left -= max(p.size, 0)
		}
	}
	return c.left < 0
}

func (e element) orName(o element) string {
	if e.name == "" {
		return o.name
	}
	return e.name
}

// pending is a content that may have to be read yet.
type pending struct {
	source
	digest string // of the payload; "" = the data is here
	sealed bool   // it is for the device alone
}

// contentOf finds the content of a file, and a key that is equal where the
// contents are.
func contentOf(e element, side Side) (pending, string) {
	none := pending{source: source{size: -1}}
	file, _ := e.value.(map[string]any)
	if file == nil {
		return none, ""
	}
	if text, ok := file["content"].(string); ok {
		return pending{source: source{size: int64(len(text)), data: []byte(text), read: true}}, "text " + text
	}
	if encoded, ok := file["contentBase64"].(string); ok {
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
		return pending{source: source{size: int64(len(data)), data: data, read: true, err: err}}, "text " + string(data)
	}
	if sealed, ok := file["secret"].(string); ok {
		return pending{source: source{size: int64(len(sealed))}, sealed: true}, "secret " + sealed
	}
	digest, ok := file["payload"].(string)
	if !ok {
		return none, ""
	}
	return pending{source: source{size: side.size(digest)}, digest: digest}, "payload " + digest
}

// load reads a payload that is not too large for it, and gives how many bytes
// more that is than its size had told.
func (p *pending) load(side Side) int64 {
	switch {
	case p.digest == "" || p.size > largestRead:
		return 0
	case side.Read == nil:
		p.err = errors.New("nobody can read it")
		return 0
	}
	told := p.size
	p.data, p.err = side.Read(p.digest)
	if p.err == nil {
		p.read, p.size = true, int64(len(p.data))
	}
	return p.size - told
}
