package schema

import (
	"bytes"
	"strings"
)

// Documents as most people write them are read here without the YAML parser,
// in a tenth of its time and without a node for each value. Whatever is not
// plainly of one meaning makes [readPlain] give up, and the parser decides: it
// alone refuses documents, and it alone knows positions.

// Limits of what is read plainly. Beyond them the parser's own bounds hold.
const (
	maxPlainDocument = 64 << 10 // bytes; what is longer is rare, and may be hostile
	maxPlainNesting  = 16       // levels; the deepest kind has 9
	maxPlainName     = 128      // bytes of a key; the parser has limits of its own from 1024
)

// plainReader reads one document from its beginning to its end.
type plainReader struct {
	text string
	pos  int      // where to go on reading
	odd  bool     // this is not for us
	maps *scratch // where mappings come from
}

// readPlain gives the value of a document, or false where it should be left to
// the parser. What it accepts, the parser accepts too and gives an equal value.
func readPlain(data []byte, maps *scratch) (value any, ok bool) {
	if len(data) > maxPlainDocument || !isPlainText(data) {
		return nil, false
	}
	r := &plainReader{text: string(data), maps: maps}
	indent := r.next()
	if indent == 0 && strings.HasPrefix(r.text[r.pos:], "---\n") {
		r.pos += len("---\n")
		indent = r.next()
	}
	if indent != 0 {
		return nil, false
	}
	m := r.mapping(0, 0)
	if r.odd || r.pos != len(r.text) {
		return nil, false
	}
	return m, true
}

// isPlainText says whether a document ends with a line end and holds nothing
// but lines of printable ASCII and of the letters from À to the end of the
// two-byte forms of UTF-8: no tabs, no line ends of other systems, no byte
// order marks.
func isPlainText(data []byte) bool {
	if len(data) == 0 || data[len(data)-1] != '\n' {
		return false
	}
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c >= ' ' && c < 0x7f, c == '\n':
		case c >= 0xc3 && c <= 0xdf && i+1 < len(data) && data[i+1] >= 0x80 && data[i+1] <= 0xbf:
			i++
		default:
			return false
		}
	}
	return true
}

// next goes to the first character of the next line that holds something, and
// gives its indentation; -1 at the end of the text.
func (r *plainReader) next() int {
	for r.pos < len(r.text) {
		start := r.pos
		at := start
		for r.text[at] == ' ' {
			at++
		}
		if c := r.text[at]; c != '\n' && c != '#' {
			r.pos = at
			return at - start
		}
		r.pos = at
		r.skipLine()
	}
	return -1
}

func (r *plainReader) skipLine() {
	r.pos += strings.IndexByte(r.text[r.pos:], '\n') + 1
}

// back returns to the beginning of the present line, so that next finds it
// again.
func (r *plainReader) back() {
	r.pos = strings.LastIndexByte(r.text[:r.pos], '\n') + 1
}

// giveUp ends the reading.
func (r *plainReader) giveUp() any {
	r.odd = true
	return nil
}

// mapping reads a block mapping whose keys stand at an indentation; the reader
// is at its first key. It ends before the first line that stands further left.
func (r *plainReader) mapping(indent, depth int) map[string]any {
	m := r.maps.tree()
	if depth > maxPlainNesting {
		r.giveUp()
	}
	for !r.odd {
		key, ok := r.key()
		if !ok {
			r.giveUp()
			break
		}
		if _, twice := m[key]; twice {
			r.giveUp()
			break
		}
		m[key] = r.value(indent, depth)
		if r.odd {
			break
		}
		here := r.next()
		if here < indent {
			r.back()
			break
		}
		if here > indent {
			r.giveUp()
		}
	}
	return m
}

// key reads a key with its colon, behind which a blank or the line end stands.
func (r *plainReader) key() (string, bool) {
	start := r.pos
	var key string
	switch c := r.text[r.pos]; {
	case c == '"' || c == '\'':
		end := strings.IndexByte(r.text[start+1:], c)
		if end < 0 {
			return "", false
		}
		key = r.text[start+1 : start+1+end]
		if strings.ContainsAny(key, "\\\n") {
			return "", false
		}
		r.pos += end + 2
	case isWord(c):
		for isWord(r.text[r.pos]) || r.text[r.pos] == '-' {
			r.pos++
		}
		if key = r.text[start:r.pos]; !plainIsString(key) {
			return "", false
		}
	}
	if key == "" || len(key) > maxPlainName || r.text[r.pos] != ':' {
		return "", false
	}
	r.pos++
	return key, r.text[r.pos] == ' ' || r.text[r.pos] == '\n'
}

// isWord says whether a character may begin a plain key or value: nothing that
// means something to YAML there.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '/' || c == '.' || c == '$'
}

// value reads what stands behind the colon of a key, in its line or below.
func (r *plainReader) value(indent, depth int) any {
	r.blanks()
	if c := r.text[r.pos]; c == '|' {
		return r.literal(indent)
	} else if c != '\n' && c != '#' {
		v := r.inline(depth)
		r.lineEnd()
		return v
	}
	r.skipLine()
	below := r.next()
	switch {
	case below >= indent && r.isItem():
		return r.sequence(below, depth+1)
	case below > indent:
		return r.mapping(below, depth+1)
	}
	r.back()
	return nil
}

func (r *plainReader) blanks() {
	for r.text[r.pos] == ' ' {
		r.pos++
	}
}

func (r *plainReader) isItem() bool {
	return r.text[r.pos] == '-' && r.text[r.pos+1] == ' '
}

// lineEnd wants nothing but a comment until the end of the line.
func (r *plainReader) lineEnd() {
	if r.odd {
		return
	}
	before := r.pos
	r.blanks()
	if c := r.text[r.pos]; c != '\n' && (c != '#' || r.pos == before) {
		r.giveUp()
		return
	}
	r.skipLine()
}

// sequence reads a block sequence whose dashes stand at an indentation; the
// reader is at the first one.
func (r *plainReader) sequence(indent, depth int) any {
	list := []any{}
	if depth > maxPlainNesting {
		return r.giveUp()
	}
	for !r.odd {
		line := r.pos - indent
		r.pos++
		r.blanks()
		list = append(list, r.item(r.pos-line, depth))
		if r.odd {
			break
		}
		here := r.next()
		if here == indent && r.isItem() {
			continue
		}
		if here > indent {
			return r.giveUp()
		}
		r.back()
		break
	}
	return list
}

// item reads what stands behind a dash: a mapping whose first key is here, or
// a value of one line.
func (r *plainReader) item(indent, depth int) any {
	start := r.pos
	if _, isKey := r.key(); isKey {
		r.pos = start
		return r.mapping(indent, depth+1)
	}
	r.pos = start
	v := r.inline(depth)
	r.lineEnd()
	return v
}

// inline reads a value of one line, outside of flow collections.
func (r *plainReader) inline(depth int) any {
	switch c := r.text[r.pos]; {
	case c == '"' || c == '\'':
		return r.quoted()
	case c == '{' || c == '[':
		return r.flow(depth + 1)
	case c == '-' || isWord(c):
		return r.plain()
	}
	return r.giveUp()
}

// flow reads a list or a mapping in brackets, all in one line.
func (r *plainReader) flow(depth int) any {
	if depth > maxPlainNesting {
		return r.giveUp()
	}
	open := r.text[r.pos]
	r.pos++
	r.blanks()
	var m map[string]any
	list := []any{}
	closing := byte(']')
	if open == '{' {
		closing, m = '}', r.maps.tree()
	}
	for first := true; !r.odd; first = false {
		if r.text[r.pos] == closing {
			if !first {
				return r.giveUp() // behind a comma
			}
			break
		}
		if m == nil {
			list = append(list, r.flowValue(depth))
		} else {
			key, ok := r.key()
			if _, twice := m[key]; !ok || twice || r.text[r.pos] != ' ' {
				return r.giveUp()
			}
			r.blanks()
			m[key] = r.flowValue(depth)
		}
		if r.odd {
			return nil
		}
		r.blanks()
		if r.text[r.pos] == closing {
			break
		}
		if r.text[r.pos] != ',' || r.text[r.pos+1] != ' ' {
			return r.giveUp()
		}
		r.pos++
		r.blanks()
	}
	r.pos++
	if m == nil {
		return list
	}
	return m
}

func (r *plainReader) flowValue(depth int) any {
	switch c := r.text[r.pos]; {
	case c == '"' || c == '\'':
		return r.quoted()
	case c == '{' || c == '[':
		return r.flow(depth + 1)
	case !isWord(c):
		return r.giveUp()
	}
	start := r.pos
	for isWord(r.text[r.pos]) || bytes.IndexByte([]byte("-%+@=~"), r.text[r.pos]) >= 0 {
		r.pos++
	}
	return r.scalar(r.text[start:r.pos])
}
