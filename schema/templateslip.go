package schema

import (
	"fmt"
	"regexp"
	"strings"
)

// endOfText is what the parser says of a text that ends within a block.
const endOfText = "unexpected EOF"

// openBlock is a part of a template that waits for its end.
type openBlock struct {
	word string
	line int
}

// actionWord is what an action begins with, where it opens or closes a block.
var actionWord = regexp.MustCompile(`^-?\s*(if|with|range|define|block|end)\b`)

// templateSlip finds what is left open in a template that does not parse. The
// parser reads on over line ends, and tells of the first thing behind it that
// does not fit, or of the end of the text: only then blocks are looked at too.
// nil = nothing is open.
func templateSlip(text string, ended bool) *templateError {
	var open []openBlock
	line := 1
	for {
		at := strings.Index(text, "{{")
		if at < 0 {
			break
		}
		line += strings.Count(text[:at], "\n")
		text = text[at+len("{{"):]
		end, closed := actionEnd(text)
		if !closed {
			return &templateError{rule: ruleTemplateSyntax, line: line, msg: "the {{ of this line is not closed", hint: "end it with }}"}
		}
		if end < 0 {
			return nil // in a quote or a comment, of which the parser tells
		}
		if m := actionWord.FindStringSubmatch(text[:end]); m != nil {
			switch {
			case m[1] != "end":
				open = append(open, openBlock{word: m[1], line: line})
			case len(open) == 0:
				return nil // one too many, of which the parser tells
			default:
				open = open[:len(open)-1]
			}
		}
		line += strings.Count(text[:end], "\n")
		text = text[end:]
	}
	if len(open) == 0 || !ended {
		return nil
	}
	last := open[len(open)-1]
	return &templateError{rule: ruleTemplateSyntax, line: last.line, msg: fmt.Sprintf("the %s of this line has no end", last.word), hint: "put {{ end }} where it ends"}
}

// actionEnd is the place behind the }} that ends an action; -1 = something
// quoted in it does not end. closed is false where another one begins before.
func actionEnd(text string) (end int, closed bool) {
	if rest := strings.TrimLeft(strings.TrimPrefix(text, "-"), " \t\r\n"); strings.HasPrefix(rest, "/*") {
		stop := strings.Index(text, "*/")
		if stop < 0 {
			return -1, true
		}
		stop += len("*/")
		if brace := strings.Index(text[stop:], "}}"); brace >= 0 {
			return stop + brace + len("}}"), true
		}
		return 0, false
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\'' || c == '`':
			past := quoteEnd(text[i:])
			if past < 0 {
				return -1, true
			}
			i += past - 1
		case strings.HasPrefix(text[i:], "}}"):
			return i + len("}}"), true
		case strings.HasPrefix(text[i:], "{{"):
			return 0, false
		}
	}
	return 0, false
}

// quoteEnd is the place behind a quoted text; -1 = it does not end, which for
// all but raw ones has to be in the same line.
func quoteEnd(text string) int {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return i + 1
		case quote == '`':
		case c == '\n':
			return -1
		case c == '\\':
			i++
		}
	}
	return -1
}
