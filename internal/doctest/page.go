package doctest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Block is one fence of a page, with what it prints where the page shows it.
type Block struct {
	Line     int    // of the fence, from 1
	Language string // "sh", "yaml", …; "" for a diagram; "text" that is nobody's output
	Text     string
	Output   string // what an sh block prints, with … for what may differ
	Shown    bool   // whether the page shows the output at all
	Exit     int    // code that an sh block ends with
	Skip     string // why an sh block is not run; "" = it is
}

// Directives are comments, so that a reader does not see them.
var (
	directive = regexp.MustCompile(`^<!-- doctest: (.*) -->$`)
	exits     = regexp.MustCompile(`^exit ([0-9]+)$`)
	skips     = regexp.MustCompile(`^skip: (.+)$`)
)

// Parse gives the fences of a page in order. An unknown directive, one
// without a fence, and a fence without an end are errors: a check that is
// misspelt must not quietly check nothing.
func Parse(page string) ([]Block, error) {
	var blocks []Block
	var next Block // what directives said about the next fence
	pending := 0   // line of a directive that waits for its fence
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimRight(lines[i], " \r")
		if m := directive.FindStringSubmatch(line); m != nil {
			if e := exits.FindStringSubmatch(m[1]); e != nil {
				next.Exit, _ = strconv.Atoi(e[1])
			} else if s := skips.FindStringSubmatch(m[1]); s != nil {
				next.Skip = s[1]
			} else {
				return nil, fmt.Errorf("line %d: unknown directive %q: exit <code> and skip: <reason> are known", i+1, m[1])
			}
			pending = i + 1
			continue
		}
		language, ok := strings.CutPrefix(line, "```")
		if !ok {
			continue
		}
		b := next
		next = Block{}
		b.Line, b.Language = i+1, language
		end := i + 1
		for end < len(lines) && strings.TrimRight(lines[end], " \r") != "```" {
			end++
		}
		if end == len(lines) {
			return nil, fmt.Errorf("line %d: the fence has no end", i+1)
		}
		b.Text = strings.Join(lines[i+1:end], "\n") + "\n"
		i = end
		if pending > 0 && language != "sh" {
			return nil, fmt.Errorf("line %d: the directive is for a fence of sh, the next one is of %q", pending, language)
		}
		pending = 0
		if language == "text" {
			if n := len(blocks); n > 0 && blocks[n-1].Language == "sh" && !blocks[n-1].Shown {
				blocks[n-1].Output, blocks[n-1].Shown = b.Text, true
				continue
			}
		}
		blocks = append(blocks, b)
	}
	if pending > 0 {
		return nil, fmt.Errorf("line %d: the directive has no fence", pending)
	}
	return blocks, nil
}

// Match says whether an output is what a page shows. An … stands for
// anything within its line, and alone on a line for any number of lines;
// runs of spaces are one space, because columns are as wide as what is in
// them.
func Match(shown, got string) bool {
	var pattern strings.Builder
	pattern.WriteString(`^`)
	for line := range strings.Lines(clean(shown)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "…" {
			pattern.WriteString(`(?:.*\n)*`)
			continue
		}
		parts := strings.Split(line, "…")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(part)
		}
		pattern.WriteString(strings.Join(parts, `.*`) + `\n`)
	}
	pattern.WriteString(`$`)
	return regexp.MustCompile(pattern.String()).MatchString(clean(got))
}

var spaces = regexp.MustCompile(`[ \t]+`)

// clean makes runs of spaces one and drops those at the ends of lines, and
// empty lines at both ends.
func clean(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(spaces.ReplaceAllString(line, " "), " ")
	}
	return strings.Join(lines, "\n") + "\n"
}
