package schema

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yamlv2 "go.yaml.in/yaml/v2"
	"go.yaml.in/yaml/v3"
)

func notUTF8(data []byte) (Problem, bool) {
	if utf8.Valid(data) {
		return Problem{}, false
	}
	p := Problem{Rule: ruleSyntax, Severity: SeverityError, Message: "this is not UTF-8",
		Hint: "save the file as UTF-8; binary content belongs into a file named as source, or into contentBase64"}
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		if c == utf8.RuneError && size == 1 {
			p.Line, p.Column = position(data, i)
			break
		}
		i += size
	}
	return p, true
}

// position counts lines and characters up to a byte, from 1.
func position(data []byte, at int) (line, column int) {
	before := data[:at]
	start := bytes.LastIndexByte(before, '\n') + 1
	return 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[start:])
}

// mistake is what the parser says of one kind of syntax error, and what is
// most often behind it.
type mistake struct {
	says string // a part of the parser's message
	// structure: the tokens are fine and do not fit together. The parser
	// counts the lines of these from 0, and of others from 1.
	structure bool
	// late: the parser's line is where the collection or the value began,
	// which may be far above what does not fit into it.
	late bool
	hint string
}

var mistakes = []mistake{
	{says: "did not find expected key", structure: true, late: true,
		hint: "begin it in the column of its neighbours; what has its value in its own line, such as {}, cannot go on below"},
	{says: "did not find expected '-' indicator", structure: true, late: true, hint: "begin it with - in the column of the list, or indent it less than the list"},
	{says: "did not find expected ',' or ']'", structure: true, hint: "close the [ that is opened here, and quote texts with commas or brackets"},
	{says: "did not find expected ',' or '}'", structure: true, hint: "close the { that is opened here, and quote texts with commas or braces"},
	{says: "did not find expected node content", structure: true, late: true, hint: "quote a value that begins with a special character"},
	{says: "did not find expected <document start>", structure: true, late: true, hint: "put nothing before or beside the document"},
	{says: "found undefined tag handle", structure: true, late: true, hint: "quote a value that begins with !"},
	{says: "found duplicate %", structure: true, late: true},
	{says: "found incompatible YAML document", structure: true, late: true},
	{says: "mapping values are not allowed", hint: "quote a text that holds a colon and a space; a line above may lack its colon"},
	{says: "could not find expected ':'", hint: "end a key with a colon, and put a text of several lines below a |"},
	{says: "block sequence entries are not allowed", hint: "begin the list in a line of its own"},
	{says: "cannot start any token", hint: "indent with spaces, and quote values that begin with a special character"},
	{says: "found a tab character", late: true, hint: "indent with spaces"},
	{says: "found unexpected end of stream", hint: "close the quote that is opened here"},
	{says: "found unknown escape character", late: true, hint: `write a backslash as \\, or use single quotes`},
}

// syntaxProblem puts the message of the parser where its cause is. documents
// is how many of the file were read before it.
func syntaxProblem(err error, data []byte, documents int) Problem {
	p := Problem{Line: 1, Rule: ruleSyntax, Severity: SeverityError}
	if at := bytes.IndexFunc(data, isNoYAML); at >= 0 && strings.Contains(err.Error(), "control characters") {
		p.Line, p.Column = position(data, at)
		p.Message = "control characters are not allowed"
		p.Hint = `write it as an escape in double quotes, such as "\u0007"`
		return p
	}
	if at := conflictMark.FindIndex(data); at != nil {
		p.Line, _ = position(data, at[0])
		p.Message = "this is a mark of an unfinished merge"
		p.Hint = "decide for one of the sides, and remove the marks"
		return p
	}
	if m := unknownAnchor.FindStringSubmatch(err.Error()); m != nil {
		p.Line, p.Column = aliasPosition(data, m[1])
		p.Rule, p.Message, p.Hint = ruleAlias, noAnchor, aliasHint
		return p
	}
	_, p.Message = parserLine(err)
	var m mistake
	for _, known := range mistakes {
		if strings.Contains(p.Message, known.says) {
			m = known
			break
		}
	}
	p.Hint = m.hint
	// Below an empty line no line is the first one, which the parsers do not
	// tell from none.
	shifted := append([]byte("\n"), bytes.TrimPrefix(data, []byte("\ufeff"))...)
	line := decodeLine(yaml.NewDecoder(bytes.NewReader(shifted)), documents)
	if m.late {
		// The older parser has the same grammar, and gives the other of the
		// two places that both know of.
		if where := decodeLine(yamlv2.NewDecoder(bytes.NewReader(shifted)), documents); where > 0 {
			line = where
		}
	}
	if !m.structure {
		line--
	}
	p.Line = min(max(line, 1), 1+bytes.Count(bytes.TrimRight(data, "\r\n"), []byte("\n")))
	sharpenSyntax(&p, bytes.Split(data, []byte("\n")), m.structure)
	return p
}

// conflictMark is what git leaves in a file that it could not merge.
var conflictMark = regexp.MustCompile(`(?m)^<<<<<<< `)

// unknownAnchor is what the parser says of an alias without an anchor: the name,
// which may be a password, and no line.
var unknownAnchor = regexp.MustCompile(`^yaml: unknown anchor '([\w-]+)' referenced$`)

// aliasPosition is where an alias of a name stands first, outside of comments.
func aliasPosition(data []byte, name string) (line, column int) {
	alias := regexp.MustCompile(`^[^#\n]*?(?:[\s\[{,]|^)(\*)` + name + `(?:[^\w-]|$)`)
	for i, text := range bytes.Split(data, []byte("\n")) {
		if m := alias.FindSubmatchIndex(text); m != nil {
			return i + 1, 1 + utf8.RuneCount(text[:m[2]])
		}
	}
	return 1, 0
}

var parserLineForm = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

// parserLine takes the line out of a message of a parser; 0 = it has none.
func parserLine(err error) (line int, msg string) {
	msg = err.Error()
	var te *yaml.TypeError
	if errors.As(err, &te) && len(te.Errors) > 0 {
		msg = te.Errors[0]
	}
	if m := parserLineForm.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
	}
	return line, oneLine(strings.TrimPrefix(msg, "yaml: "))
}

// decodeLine is the line of the error that ends the reading of a document;
// 0 = there is none.
func decodeLine(dec interface{ Decode(v any) error }, documents int) int {
	for range documents {
		if err := dec.Decode(&ignored{}); err != nil {
			break
		}
	}
	err := dec.Decode(&ignored{})
	if err == nil {
		return 0
	}
	line, _ := parserLine(err)
	return line
}

// ignored is a value that is only parsed.
type ignored struct{}

func (*ignored) UnmarshalYAML(func(any) error) error { return nil }

// isNoYAML is what YAML 1.2 (5.1) does not allow outside of escapes.
func isNoYAML(c rune) bool {
	switch {
	case c == '\t', c == '\n', c == '\r', c == 0x85, c == utf8.RuneError:
		return false
	case c < ' ', c >= 0x7f && c < 0xa0, c == 0xfffe, c == 0xffff:
		return true
	}
	return false
}
