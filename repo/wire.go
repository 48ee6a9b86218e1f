package repo

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

// What is said to a server: gitprotocol-v2(5) and gitprotocol-pack(5). A
// client that names no object format means sha1, which saves a poll 24 bytes.

// agentName is how this program calls itself to servers; some only talk to
// clients whose name begins like git's own.
const agentName = "git/gitopsd"

// fetchRequest asks for objects in one round: everything that this side has
// is said at once.
type fetchRequest struct {
	wants    []oid
	haves    []oid
	shallows []oid  // haves without their parents
	depth    int    // 0 = with all parents
	filter   string // "" = none; only where the server can
}

// encodeLsRefs asks for refs by prefix in protocol v2.
func encodeLsRefs(prefixes []string, head bool, caps capabilities) []byte {
	var b bytes.Buffer
	pktLine(&b, "command=ls-refs\n")
	b.WriteString("0001")
	if head {
		pktLine(&b, "symrefs\n")
		if caps.feature("ls-refs", "unborn") {
			pktLine(&b, "unborn\n")
		}
		pktLine(&b, "ref-prefix HEAD\n")
	}
	for _, p := range prefixes {
		pktLine(&b, "ref-prefix %s\n", p)
	}
	b.WriteString("0000")
	return b.Bytes()
}

// readLsRefs reads the answer to ls-refs, up to its flush packet.
func readLsRefs(p *pktReader, want func(string) bool) (*listing, error) {
	l := &listing{refs: map[string]oid{}, v2: true}
	for lines := 0; ; lines++ {
		if lines > maxAdvert {
			return nil, fail(kindRefused, "the server lists more than %d refs", maxAdvert)
		}
		line, n, err := p.text()
		if err != nil {
			return nil, cutShort(err)
		}
		if n == pktFlush {
			return l, nil
		}
		if n < 0 {
			continue
		}
		words := strings.Split(string(line), " ")
		if len(words) < 2 {
			return nil, fail(kindNetwork, "the answer is not git's: %q is no ref", sanitize(string(line), 60))
		}
		for _, attr := range words[2:] {
			if target, ok := strings.CutPrefix(attr, "symref-target:"); ok && words[1] == "HEAD" && validRef(target) == nil {
				l.head = target
			}
		}
		if words[0] == "unborn" || words[1] == "HEAD" {
			continue
		}
		id, err := parseOID(words[0])
		if err != nil {
			return nil, fail(kindNetwork, "the answer is not git's: %q is no ref", sanitize(string(line), 60))
		}
		if validRef(words[1]) == nil && want(words[1]) {
			if err := l.keep(words[1], id); err != nil {
				return nil, err
			}
		}
	}
}

// encodeFetch2 is a fetch in protocol v2.
func encodeFetch2(req *fetchRequest, caps capabilities) []byte {
	var b bytes.Buffer
	pktLine(&b, "command=fetch\n")
	b.WriteString("0001")
	pktLine(&b, "thin-pack\n")
	pktLine(&b, "ofs-delta\n")
	pktLine(&b, "no-progress\n")
	for _, h := range req.wants {
		pktLine(&b, "want %s\n", h)
	}
	if caps.feature("fetch", "shallow") {
		for _, h := range req.shallows {
			pktLine(&b, "shallow %s\n", h)
		}
		if req.depth > 0 {
			pktLine(&b, "deepen %d\n", req.depth)
		}
	}
	if req.filter != "" && caps.feature("fetch", "filter") {
		pktLine(&b, "filter %s\n", req.filter)
	}
	for _, h := range req.haves {
		pktLine(&b, "have %s\n", h)
	}
	pktLine(&b, "done\n")
	b.WriteString("0000")
	return b.Bytes()
}

// readFetch2 reads the answer to a v2 fetch and gives its pack to sink.
func readFetch2(p *pktReader, sink func(io.Reader) error) error {
	for lines := 0; lines < maxAdvert; lines++ {
		line, n, err := p.text()
		if err != nil {
			return cutShort(err)
		}
		if n == pktFlush {
			return fail(kindNetwork, "the server sent no pack")
		}
		if string(line) != "packfile" {
			// Shallow information and acknowledgements say nothing new: all
			// that is known here was said in the request.
			continue
		}
		return drainPack(&sideband{p: p}, sink)
	}
	return fail(kindNetwork, "the answer is not git's: endless sections")
}

// drainPack gives the pack to sink and reads the stream to its end, so that
// the connection can be used again.
func drainPack(r io.Reader, sink func(io.Reader) error) error {
	if err := sink(r); err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(r, 1<<20))
	if err != nil {
		return err
	}
	if n > 0 {
		return fail(kindCorrupt, "the server sent %d bytes behind the pack", n)
	}
	return nil
}

// encodeFetch0 is a fetch in protocol v0 and v1.
func encodeFetch0(req *fetchRequest, caps capabilities) []byte {
	var b bytes.Buffer
	words := []string{"agent=" + agentName}
	for _, c := range []string{"side-band-64k", "thin-pack", "ofs-delta", "no-progress"} {
		if caps.has(c) {
			words = append(words, c)
		}
	}
	if caps.has("object-format") {
		words = append(words, "object-format=sha1")
	}
	shallow := caps.has("shallow")
	if shallow {
		words = append(words, "shallow")
	}
	filter := req.filter != "" && caps.has("filter")
	if filter {
		words = append(words, "filter")
	}
	for i, h := range req.wants {
		if i == 0 {
			pktLine(&b, "want %s %s\n", h, strings.Join(words, " "))
			continue
		}
		pktLine(&b, "want %s\n", h)
	}
	if shallow {
		for _, h := range req.shallows {
			pktLine(&b, "shallow %s\n", h)
		}
		if req.depth > 0 {
			pktLine(&b, "deepen %d\n", req.depth)
		}
	}
	if filter {
		pktLine(&b, "filter %s\n", req.filter)
	}
	b.WriteString("0000")
	for _, h := range req.haves {
		pktLine(&b, "have %s\n", h)
	}
	pktLine(&b, "done\n")
	return b.Bytes()
}

// readFetch0 reads the answer to a v0 fetch and gives its pack to sink.
func readFetch0(p *pktReader, req *fetchRequest, caps capabilities, sink func(io.Reader) error) error {
	if req.depth > 0 && caps.has("shallow") {
		for n := 0; n != pktFlush; {
			var err error
			if _, n, err = p.text(); err != nil {
				return cutShort(err)
			}
		}
	}
	for lines := 0; lines < maxAdvert; lines++ {
		line, n, err := p.text()
		if err != nil {
			return cutShort(err)
		}
		switch {
		case n < 0:
			continue
		case string(line) == "NAK", bytes.HasPrefix(line, []byte("ACK ")):
			if !caps.has("side-band-64k") {
				// The bare pack follows. Without multi_ack there is exactly
				// one such line.
				return drainPack(p.r, sink)
			}
			continue
		case !caps.has("side-band-64k"):
			return fail(kindNetwork, "the answer is not git's: %q instead of an acknowledgement", sanitize(string(line), 60))
		}
		sb := &sideband{p: p}
		// text removed a line feed that may belong to the pack: look at the
		// packet as it came.
		if err := sb.take(p.buf[:p.last], p.last); err != nil {
			return err
		}
		return drainPack(sb, sink)
	}
	return fail(kindNetwork, "the answer is not git's: endless acknowledgements")
}

// refUpdate is one command of a push; a zero old creates, a zero new deletes.
type refUpdate struct {
	name     string
	old, new oid
}

// encodePush writes the commands of a push; the pack follows them.
func encodePush(cmds []refUpdate, caps capabilities, atomic bool) []byte {
	var b bytes.Buffer
	words := []string{"report-status"}
	for _, c := range []string{"side-band-64k", "quiet"} {
		if caps.has(c) {
			words = append(words, c)
		}
	}
	if atomic {
		words = append(words, "atomic")
	}
	if caps.has("object-format") {
		words = append(words, "object-format=sha1")
	}
	words = append(words, "agent="+agentName)
	for i, c := range cmds {
		if i == 0 {
			pktLine(&b, "%s %s %s\x00 %s", c.old, c.new, c.name, strings.Join(words, " "))
			continue
		}
		pktLine(&b, "%s %s %s", c.old, c.new, c.name)
	}
	b.WriteString("0000")
	return b.Bytes()
}

// pushResult is what a server answered to a push.
type pushResult struct {
	unpack string            // "ok", or why not
	status map[string]string // ref → "" when it moved, else the reason
	notes  string            // what hooks printed, for people
}

// reason is why a ref did not move, "" when it did.
func (r *pushResult) reason(name string) string {
	if r.unpack != "ok" {
		return "unpack: " + r.unpack
	}
	why, ok := r.status[name]
	if !ok {
		return "the server said nothing about it"
	}
	return why
}

// readPush reads the report of a push.
func readPush(r io.Reader, caps capabilities) (*pushResult, error) {
	res := &pushResult{status: map[string]string{}}
	p := newPktReader(r)
	var sb *sideband
	if caps.has("side-band-64k") {
		sb = &sideband{p: p}
		p = newPktReader(sb)
	}
	err := res.read(p)
	if sb != nil {
		if err == nil {
			_, err = io.Copy(io.Discard, io.LimitReader(sb, 1<<20))
		}
		res.notes = sanitize(string(sb.notes), 500)
	}
	if err != nil && res.notes != "" && !hasKind(err, kindRefused) {
		err = fail(kindNetwork, "%w; the server says: %s", err, res.notes)
	}
	return res, err
}

func (r *pushResult) read(p *pktReader) error {
	for lines := 0; lines < maxAdvert; lines++ {
		line, n, err := p.text()
		if err != nil {
			if errors.Is(err, io.EOF) && r.unpack != "" {
				return nil
			}
			return cutShort(err)
		}
		if n == pktFlush {
			if r.unpack == "" {
				return fail(kindNetwork, "the answer is not git's: no report of the push")
			}
			return nil
		}
		word, rest, _ := strings.Cut(string(line), " ")
		switch word {
		case "unpack":
			r.unpack = sanitize(rest, 300)
		case "ok":
			r.status[rest] = ""
		case "ng":
			name, why, _ := strings.Cut(rest, " ")
			if why == "" {
				why = "refused without a reason"
			}
			r.status[name] = sanitize(why, 300)
		case "option":
		default:
			return fail(kindNetwork, "the answer is not git's: %q in the report of a push", sanitize(string(line), 60))
		}
	}
	return fail(kindNetwork, "the answer is not git's: an endless report")
}

// retryAfter reads the header of that name: seconds, else "".
func retryAfter(value string) string {
	if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && n > 0 && n < 1e6 {
		return strconv.Itoa(n) + " s"
	}
	return ""
}
