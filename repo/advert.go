package repo

import (
	"bytes"
	"errors"
	"io"
	"strings"
)

// listing is what a server says it has.
type listing struct {
	refs map[string]oid
	head string // the ref that HEAD points to, "" when unknown
	caps capabilities
	v2   bool
	size int // bytes that refs takes, roughly
	// all holds the names of every advertised object in protocol v0, where
	// only these may be asked for.
	all map[oid]bool
}

// capabilities of a server: name → value; names given more than once keep
// the first value.
type capabilities map[string]string

func (c capabilities) has(name string) bool { _, ok := c[name]; return ok }

// feature tells whether a v2 command ("fetch") has a feature ("shallow").
func (c capabilities) feature(command, feature string) bool {
	for _, f := range strings.Fields(c[command]) {
		if f == feature {
			return true
		}
	}
	return false
}

func (c capabilities) checkFormat() error {
	if f, ok := c["object-format"]; ok && f != "sha1" {
		return fail(kindRefused, "the repository's objects are named by %s", sanitize(f, 20)).
			hint("only repositories with sha1 objects are supported")
	}
	return nil
}

// maxAdvert bounds the advertised refs of a server, in lines; at 80 bytes
// each this is 160 MB on the wire, of which only what is asked for is kept.
const maxAdvert = 2 << 20

// readAdvert reads what a server says first: refs and capabilities in
// protocol v0 and v1, only capabilities in v2. want chooses the refs to keep;
// keepAll keeps the object names too. Over http, where service is given, a line
// with it comes before; only v2 may leave it out. Without it nothing would tell
// an empty repository from a proxy that has nothing to say.
func readAdvert(p *pktReader, service string, want func(string) bool, keepAll bool) (*listing, error) {
	l := &listing{refs: map[string]oid{}, caps: capabilities{}}
	if keepAll {
		l.all = map[oid]bool{}
	}
	first, named := true, service == ""
	for lines := 0; ; lines++ {
		if lines > maxAdvert {
			return nil, fail(kindRefused, "the server advertises more than %d refs", maxAdvert)
		}
		line, n, err := p.text()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = cutShort(err)
			}
			return nil, err
		}
		switch {
		case !named && string(line) != "# service="+service && string(line) != "version 2":
			return nil, fail(kindNetwork, "the answer is not git's: it does not begin with the line of the service").
				hint("something else than a git server answers at this address")
		case n == pktFlush:
			return l, l.caps.checkFormat()
		case n < 0:
			continue
		case lines == 0 && bytes.HasPrefix(line, []byte("# service=")):
			named = true
			// Only a flush may follow; then it all begins again.
			_, n, err := p.text()
			if err != nil || n != pktFlush {
				return nil, fail(kindNetwork, "the answer is not git's: no flush behind the service line")
			}
			lines = -1
			continue
		case first && string(line) == "version 2":
			l.v2 = true
			return l, readV2Capabilities(p, l)
		case first && string(line) == "version 1":
			lines = -1
			continue
		}
		if err := l.addLine(line, first, want); err != nil {
			return nil, err
		}
		first = false
	}
}

func readV2Capabilities(p *pktReader, l *listing) error {
	for lines := 0; lines < 1000; lines++ {
		line, n, err := p.text()
		if err != nil {
			return cutShort(err)
		}
		if n == pktFlush {
			return l.caps.checkFormat()
		}
		name, value, _ := strings.Cut(string(line), "=")
		if !l.caps.has(name) {
			l.caps[name] = value
		}
	}
	return fail(kindNetwork, "the answer is not git's: endless capabilities")
}

// addLine takes one line of a v0 advertisement: "<hash> <name>", the first
// with a NUL and the capabilities behind.
func (l *listing) addLine(line []byte, first bool, want func(string) bool) error {
	if first {
		if before, caps, ok := bytes.Cut(line, []byte{0}); ok {
			l.readCaps(string(caps))
			line = before
		}
	}
	text := string(line)
	if strings.HasPrefix(text, "shallow ") {
		return nil
	}
	hash, name, ok := strings.Cut(text, " ")
	if !ok {
		return fail(kindNetwork, "the answer is not git's: %q is no ref", sanitize(text, 60)).
			hint("something else than a git server answers at this address")
	}
	id, err := parseOID(hash)
	if err != nil {
		if hasKind(err, kindRefused) {
			return err
		}
		return fail(kindNetwork, "the answer is not git's: %q is no ref", sanitize(text, 60))
	}
	if id.IsZero() || name == "capabilities^{}" {
		return nil
	}
	if l.all != nil {
		l.all[id] = true
	}
	if name != "HEAD" && validRef(name) == nil && want(name) {
		return l.keep(name, id)
	}
	return nil
}

// maxListing bounds what is kept of a listing, in bytes: some hundred
// thousand refs.
const maxListing = 128 << 20

// keep adds a ref to the listing.
func (l *listing) keep(name string, id oid) error {
	// 100 bytes is about what an entry of the map costs beside the name.
	if l.size += len(name) + 100; l.size > maxListing {
		return fail(kindRefused, "the server lists refs of more than %d bytes", maxListing)
	}
	l.refs[name] = id
	return nil
}

func (l *listing) readCaps(text string) {
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		if name == "symref" {
			if target, ok := strings.CutPrefix(value, "HEAD:"); ok && validRef(target) == nil {
				l.head = target
			}
			continue
		}
		if !l.caps.has(name) {
			l.caps[name] = value
		}
	}
}

// anyPrefix makes the choice of refs from name prefixes; none chooses nothing.
func anyPrefix(prefixes []string) func(string) bool {
	return func(name string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				return true
			}
		}
		return false
	}
}
