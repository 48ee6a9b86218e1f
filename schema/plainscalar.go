package schema

import (
	"strconv"
	"strings"
)

// plain reads an unquoted value up to a comment or the end of its line.
func (r *plainReader) plain() any {
	rest := r.text[r.pos:]
	end := strings.IndexByte(rest, '\n')
	if at := strings.Index(rest[:end], " #"); at >= 0 {
		end = at
	}
	s := strings.TrimRight(rest[:end], " ")
	if strings.Contains(s, ": ") || strings.HasSuffix(s, ":") || s[0] == '-' && (len(s) == 1 || !isWord(s[1])) {
		return r.giveUp()
	}
	r.pos += len(s)
	return r.scalar(s)
}

// scalar gives an unquoted text its meaning; numbers other than plain whole
// ones are left to the parser.
func (r *plainReader) scalar(s string) any {
	switch b, isBool := coreBool(s); {
	case isCoreNull(s):
		return nil
	case isBool:
		return b
	case !looksNumeric(s):
		return s
	}
	const digits = 15 // as many are exact everywhere
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || len(s) > digits || s[0] == '+' || hasLeadingZero(s) {
		return r.giveUp()
	}
	return n
}

// quoted reads a quoted text that ends in its line. Escapes other than the
// most common ones are left to the parser.
func (r *plainReader) quoted() any {
	quote := r.text[r.pos]
	rest := r.text[r.pos+1:]
	end := strings.IndexByte(rest, quote)
	if end < 0 {
		return r.giveUp()
	}
	s := rest[:end]
	if quote == '"' && strings.IndexByte(s, '\\') >= 0 {
		return r.escaped()
	}
	if strings.IndexByte(s, '\n') >= 0 || rest[end+1] == quote {
		return r.giveUp()
	}
	r.pos += end + 2
	return s
}

func (r *plainReader) escaped() any {
	var b strings.Builder
	for r.pos++; ; r.pos++ {
		switch c := r.text[r.pos]; c {
		case '\n':
			return r.giveUp()
		case '"':
			r.pos++
			return b.String()
		case '\\':
			r.pos++
			switch r.text[r.pos] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case '"', '\\':
				b.WriteByte(r.text[r.pos])
			default:
				return r.giveUp()
			}
		default:
			b.WriteByte(c)
		}
	}
}

// literal reads a block of lines behind | or |-.
func (r *plainReader) literal(indent int) any {
	r.pos++
	strip := r.text[r.pos] == '-'
	if strip {
		r.pos++
	}
	if r.text[r.pos] != '\n' {
		return r.giveUp()
	}
	r.pos++
	const usual = 256 // bytes, which need no memory of their own while they grow
	b := make([]byte, 0, usual)
	margin, blank := -1, 0
	for r.pos < len(r.text) {
		end := r.pos + strings.IndexByte(r.text[r.pos:], '\n')
		line := r.text[r.pos:end]
		if line == "" {
			if margin < 0 {
				return r.giveUp() // lines before the text have rules of their own
			}
			blank++
			r.pos = end + 1
			continue
		}
		content := strings.TrimLeft(line, " ")
		here := len(line) - len(content)
		if content == "" {
			return r.giveUp() // only blanks: so do these
		}
		if margin < 0 && here > indent {
			margin = here
		}
		if here < margin || margin < 0 {
			break
		}
		for ; blank > 0; blank-- {
			b = append(b, '\n')
		}
		b = append(b, line[margin:]...)
		b = append(b, '\n')
		r.pos = end + 1
	}
	if margin < 0 {
		return r.giveUp()
	}
	if r.pos < len(r.text) && r.next() > indent {
		return r.giveUp()
	}
	if r.pos < len(r.text) {
		r.back()
	}
	if strip {
		b = b[:len(b)-1]
	}
	return string(b)
}
