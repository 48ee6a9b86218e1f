package edit

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// scalar is a value as it is compared: its type, as YAML names it, and what is
// written.
type scalar struct{ tag, text string }

// tagTime is the type of a time that stands without quotes.
const tagTime = "!!timestamp"

// valueOf turns what a caller wants to set into what is compared.
func valueOf(v any) (any, error) {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return nil, fmt.Errorf("the text %q is not UTF-8", v)
		}
		return scalar{"!!str", v}, nil
	case bool:
		return scalar{"!!bool", strconv.FormatBool(v)}, nil
	case int:
		return scalar{"!!int", strconv.Itoa(v)}, nil
	case time.Time:
		return scalar{tagTime, v.UTC().Format(time.RFC3339)}, nil
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			var err error
			if list[i], err = valueOf(s); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("a value of type %T cannot be set", v)
}

// write writes a value on one line. Its texts and keys get the quotes of the
// style, if they can.
func write(v any, style yaml.Style, flow bool) string {
	switch v := v.(type) {
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = write(v[i], style, true)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any: // of one key
		for key, inner := range v {
			return "{" + write(scalar{"!!str", key}, style, true) + ": " + write(inner, style, true) + "}"
		}
	case scalar:
		if v.tag == "!!str" {
			return writeText(v.text, style, flow)
		}
		return v.text
	}
	return "{}"
}

func writeText(s string, style yaml.Style, flow bool) string {
	drawn := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	switch {
	case style&yaml.DoubleQuotedStyle != 0:
	case style&yaml.SingleQuotedStyle != 0 && drawn:
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	case drawn && isPlain(s, flow):
		return s
	}
	// Go's escapes are a part of those of YAML.
	return strconv.Quote(s)
}

// numbered is a version of three numbers, which no reader takes for a number.
var numbered = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9][0-9A-Za-z.+-]*$`)

// words are what some reader takes for something else than a text.
var words = []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}

// isPlain says whether a text may stand without quotes for every reader, old
// ones too: it rather quotes once too often.
func isPlain(s string, flow bool) bool {
	first, _ := utf8.DecodeRuneInString(s)
	switch {
	case numbered.MatchString(s):
		return true
	case !unicode.IsLetter(first) && first != '/',
		slices.Contains(words, strings.ToLower(s)),
		strings.HasSuffix(s, ":"), strings.HasSuffix(s, " "),
		strings.Contains(s, ": "), strings.Contains(s, " #"):
		return false
	}
	return !flow || !strings.ContainsAny(s, ",[]{}:")
}
