package comment_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gitopsd/gitopsd/internal/comment"
	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// hostile is text that would do something on GitHub, or break what is around
// it.
var hostile = []string{
	"@octocat", "@org/team", "(@octocat)", "x@example.com", "#1", "GH-1", "org/repo#1", "fixes #1", "closes GH-1",
	"deadbeefcafe", "defaced", "1234567", strings.Repeat("0123456789", 4), "org/repo@1234567",
	"https://example.com/x", "www.example.com", "mailto:x@example.com", "<https://example.com>", "[x](https://example.com)",
	"![x](https://example.com/x.png)", "[x]: https://example.com", "[x]", "[^1]", "[^1]: x", "- [ ] x", "- [x]",
	"<img src=x onerror=alert(1)>", "<script>", "</details>", "<details>", "</summary>", "</code>", "<code>", "<!--", "-->", "<!-- gitopsd:plan name= head= base= -->",
	"`", "``", "```", "````sh", "~~~", "~~x~~", "**x**", "*x*", "_x_", "***", "---", "===", "> x", "# x", "1. x", "1)", "12.", "+ x", "- x", "    x",
	"|", "\\|", "\\", "a|b", "`|`", "&#64;octocat", "&lt;b&gt;", "\\@octocat", "$x$", "$$", ":smile:", "CVE-2024-1234", "GHSA-aaaa-bbbb-cccc",
	"\n", "\r\n", "\r", "\t", "\x00", "\x1b[31m", "\u202e", "\u2066", "\u200b@octocat", "\u2028", "\u00a0", "\xff", "\U000e0001", "\ufeff",
	"é", "日本語", "🌈", "e\u0301", "a", "word", "…", "→", "=", "+", "(", ")", "\"", ".", ",", ":", " ", "\n\n</details>\n\n# x\n\n@octocat",
	strings.Repeat("long ", 200), strings.Repeat("x", 2_000), strings.Repeat("| ", 300), strings.Repeat("🌈", 200), strings.Repeat("`", 300),
}

func anyText() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.SampledFrom(hostile), rapid.StringN(0, 12, 40))
	return rapid.Custom(func(t *rapid.T) string {
		joint := rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "joint")
		return strings.Join(rapid.SliceOfN(piece, 0, 4).Draw(t, "pieces"), joint)
	})
}

// modeled draws previews whose every text is hostile.
type modeled struct {
	*rapid.T
	text *rapid.Generator[string]
	most int // of the entries of a list
}

func (m modeled) str() string { return m.text.Draw(m.T, "text") }

func (m modeled) n() int { return rapid.IntRange(0, m.most).Draw(m.T, "n") }

func (m modeled) num() int { return rapid.IntRange(0, 20_000).Draw(m.T, "number") }

func list[E any](m modeled, one func() E) []E {
	out := make([]E, m.n())
	for i := range out {
		out[i] = one()
	}
	return out
}

func (m modeled) op() string {
	return rapid.SampledFrom([]string{preview.Added, preview.Removed, preview.Changed}).Draw(m.T, "op")
}

func (m modeled) place() preview.Place {
	return preview.Place{Name: m.str(), Commit: rapid.SampledFrom([]string{"", "abc123", m.str()}).Draw(m.T, "commit")}
}

func (m modeled) change() preview.Change {
	ch := preview.Change{
		Pointer: m.str(), Section: rapid.SampledFrom([]string{"files", "hooks", "directories", m.str()}).Draw(m.T, "section"), Name: m.str(), Op: m.op(),
		Fields: list(m, func() preview.Field { return preview.Field{Name: m.str(), From: m.str(), To: m.str()} }),
		Varies: rapid.Bool().Draw(m.T, "varies"),
	}
	if rapid.Bool().Draw(m.T, "content") {
		ch.Content = &preview.Content{
			From: int64(m.num() - 1), To: int64(m.num() - 1), Binary: rapid.Bool().Draw(m.T, "binary"), Hidden: m.str(),
			Inserted: m.num(), Deleted: m.num(), Lines: list(m, m.str), More: m.num(),
		}
	}
	return ch
}

func (m modeled) group() preview.Group {
	return preview.Group{
		Devices: list(m, m.str), Policies: list(m, m.str), From: m.str(), To: m.str(), Changes: list(m, m.change),
		Unknown: rapid.Bool().Draw(m.T, "unknown"), Variants: m.num(), Example: m.str(),
		Before: rapid.SampledFrom([]preview.Before{preview.BeforeBase, preview.BeforeRuns, preview.BeforeNothing, preview.BeforeUnread}).Draw(m.T, "before"),
		Wanted: m.str(), Counts: map[string]int{m.str(): m.num()},
		Effect: preview.Effect{
			Starts: list(m, m.str), Restarts: list(m, m.str), Reloads: list(m, m.str), Stops: list(m, m.str), Removes: list(m, m.str), PutsBack: list(m, m.str),
			Hooks: list(m, m.str), Reboot: m.str(), Again: rapid.Bool().Draw(m.T, "again"),
			Download: preview.Download{Total: int64(m.num()), Least: int64(m.num()), Most: int64(m.num()), Bound: rapid.Bool().Draw(m.T, "bound")},
		},
	}
}

func (m modeled) policyChange() preview.PolicyChange {
	return preview.PolicyChange{
		Policy: m.str(), Op: m.op(), MayGoBefore: m.num(), MayGo: m.num(), SoonBefore: m.num(), Soon: m.num(),
		Fields: list(m, func() preview.PolicyField {
			return preview.PolicyField{Field: m.str(), Words: m.str(), From: m.str(), To: m.str(), Careful: rapid.SampledFrom([]string{"", "less", "more"}).Draw(m.T, "careful")}
		}),
	}
}

func (m modeled) verdict() preview.Verdict {
	infos := planner.Codes()
	at := time.Unix(int64(m.num()), 0).UTC()
	v := preview.Verdict{
		Device: m.str(), Policy: m.str(), Reason: m.str(), Version: m.str(), Target: m.str(), Wave: m.str(), Detail: m.str(),
		Position: m.num(), NotBefore: &at, Code: string(rapid.SampledFrom(infos).Draw(m.T, "code").Code),
	}
	v.Upgrade = v.Code == string(planner.Upgrade)
	return v
}

func (m modeled) plan() *preview.Plan {
	p := &preview.Plan{
		Head: m.place(), Note: m.str(), Changes: list(m, m.group), PolicyChanges: list(m, m.policyChange),
		Membership: preview.Membership{
			Added: list(m, m.str), Removed: list(m, m.str),
			Moved:    list(m, func() preview.Move { return preview.Move{Device: m.str(), From: m.str(), To: m.str()} }),
			NoTarget: list(m, func() preview.NoTarget { return preview.NoTarget{Device: m.str(), Reason: m.str()} }),
			Settings: list(m, func() preview.DeviceSetting {
				return preview.DeviceSetting{Device: m.str(), Field: m.str(), Words: m.str()}
			}),
		},
		WorstCase: list(m, func() preview.Reach {
			return preview.Reach{Policy: m.str(), Target: m.str(), Devices: m.num(), Of: m.num(), Words: list(m, m.str), NeverSeen: m.num()}
		}),
		Verdicts: list(m, m.verdict),
		Recalls:  list(m, func() preview.Recall { return preview.Recall{Device: m.str(), Because: m.str()} }),
		Summary: preview.Summary{
			Assumed: rapid.Bool().Draw(m.T, "assumed"), Upgrades: m.num(), Recalls: m.num(), Warnings: list(m, m.str),
			Policies: list(m, func() preview.PolicyState { return preview.PolicyState{Policy: m.str(), Waves: list(m, m.str)} }),
		},
	}
	if rapid.Bool().Draw(m.T, "compared") {
		base := m.place()
		p.Base = &base
	}
	return p
}

func (m modeled) problem() schema.Problem {
	return schema.Problem{
		File: m.str(), Line: m.num(), Column: m.num(), Rule: m.str(), Message: m.str(), Hint: m.str(),
		Severity: rapid.SampledFrom([]schema.Severity{schema.SeverityError, schema.SeverityWarning, schema.Severity(m.str())}).Draw(m.T, "severity"),
	}
}

func (m modeled) options() comment.Options {
	return comment.Options{
		Name: m.str(), Command: m.str(),
		Limit: rapid.OneOf(rapid.Just(0), rapid.Just(comment.MinBytes), rapid.IntRange(comment.MinBytes, comment.MaxBytes)).Draw(m.T, "limit"),
	}
}

// check says what must hold of every comment.
func check(t interface{ Fatalf(string, ...any) }, body string, limit int, reason string) {
	if limit == 0 {
		limit = comment.MaxBytes
	}
	longest, widest := strings.Repeat("🌈", 200), strings.Repeat("| ", 200)
	for _, b := range []string{body, comment.Stale(body, reason), comment.Stale(body, longest), comment.Stale(body, widest)} {
		if len(b) > limit {
			t.Fatalf("%d bytes, %d may be:\n%s", len(b), limit, b)
		}
		if list := wrong(b); len(list) > 0 {
			t.Fatalf("%s\nin\n%s", strings.Join(list, "\n"), b)
		}
		if n := strings.Count(b, "\n### gitopsd plan: "); n != 1 {
			t.Fatalf("%d verdicts in\n%s", n, b)
		}
		if _, found := comment.Find(b); !found {
			t.Fatalf("no mark in\n%s", b)
		}
	}
}

// TestB117 is a plan that is too long for GitHub, or holds what would break out
// of it: one comment that is not cut in the middle, of whatever limit.
func TestB117(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := modeled{T: t, text: anyText(), most: rapid.SampledFrom([]int{2, 4}).Draw(t, "most")}
		o := m.options()
		if rapid.Bool().Draw(t, "valid") {
			check(t, comment.Render(m.plan(), o), o.Limit, m.str())
		} else {
			check(t, comment.RenderProblems(m.place(), list(m, m.problem), o), o.Limit, m.str())
		}
	})
}

// everywhere is a preview that holds one text wherever a text may be.
func everywhere(s string) *preview.Plan {
	return rapid.Custom(func(t *rapid.T) *preview.Plan {
		return modeled{T: t, text: rapid.Just(s), most: 2}.plan()
	}).Example(len(s))
}

func FuzzRender(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, 0)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if limit != 0 {
			limit = max(comment.MinBytes, min(limit, comment.MaxBytes))
		}
		o := comment.Options{Name: s, Command: s, Limit: limit}
		check(t, comment.Render(everywhere(s), o), limit, s)
		problems := []schema.Problem{{File: s, Line: 1, Column: 2, Rule: s, Message: s, Hint: s, Severity: schema.SeverityError}}
		check(t, comment.RenderProblems(preview.Place{Name: s, Commit: s}, problems, o), limit, s)
	})
}
