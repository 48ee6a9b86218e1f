package preview_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"github.com/gitopsd/gitopsd/internal/comment"
	"github.com/gitopsd/gitopsd/internal/preview"
)

// secretWord is a part of a secret, which stands nowhere else.
var secretWord = regexp.MustCompile(`(?i)zq[a-z]{6}`)

// anySecret draws a value with line breaks, blanks and quotes wherever they may be.
func anySecret() *rapid.Generator[string] {
	joint := rapid.SampledFrom([]string{"", " ", "\n", "\r\n", "\n\n", "\r", " \n\t", "\"", "\\", ": ", "=", "\u2028", "{\n", "\n}\n"})
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(1, 4).Draw(t, "words") {
			b.WriteString(joint.Draw(t, "joint") + rapid.StringMatching(`(zq|Zq)[a-zA-Z]{6}`).Draw(t, "word"))
		}
		return b.String() + joint.Draw(t, "end")
	})
}

// Nothing of a device's secret is in any form of a preview: whatever its line
// breaks, whatever a template makes of it, whether it comes, goes or was changed,
// and whatever devices say that they run.
func TestNoSecretIsInAPreview(t *testing.T) {
	template := rapid.SampledFrom([]string{
		"%s", "%s | upper", "%s | lower", "%s | trim", "%s | quote", "%s | trim | quote", "%s | upper | quote", "%s | quote | lower", "%s | default `x`",
	})
	const head = "apiVersion: gitopsd.dev/v1alpha1\nkind: "
	rapid.Check(t, func(r *rapid.T) {
		var archive txtar.Archive
		var present string
		add := func(name, text string, args ...any) {
			archive.Files = append(archive.Files, txtar.File{Name: name, Data: fmt.Appendf(nil, text, args...)})
		}
		policy := head + "Policy\nmetadata: {name: gateways}\nspec: {enabled: true, selector: {matchLabels: {role: gateway}}, targetVersion: %s}\n"
		add("base/policies/gateways.yaml", policy, "v1.4.0")
		add("head/policies/gateways.yaml", policy, rapid.SampledFrom([]string{"v1.4.0", "v1.5.0"}).Draw(r, "target"))
		for _, version := range []string{"v1.4.0", "v1.5.0"} {
			for _, side := range []string{"base", "head", "older"} {
				var content strings.Builder
				for range rapid.IntRange(0, 2).Draw(r, "uses") {
					fmt.Fprintf(&content, "%s {{ %s }}%s", rapid.SampledFrom([]string{"", "port 7\nx", "y ="}).Draw(r, "before"),
						fmt.Sprintf(template.Draw(r, "template"), ".vars.joinPassword"), rapid.SampledFrom([]string{"", "\n", "!\n"}).Draw(r, "behind"))
				}
				add(side+"/releases/gateways/"+version+".yaml", head+"Release\nmetadata: {name: %s}\nspec: {files: {/etc/cluster: {template: true, content: %q}}}\n", version, content.String())
			}
		}
		for _, device := range []string{"gw-1", "gw-2"} {
			for _, side := range []string{"base", "head", "older"} {
				add(side+"/devices/"+device+".yaml", head+"Device\nmetadata: {name: %s, labels: {role: gateway}}\nspec: {vars: {joinPassword: %s}}\n",
					device, strconv.QuoteToASCII(anySecret().Draw(r, "secret")))
			}
			content := rapid.SampledFrom([]string{"base", "older", "head", "unknown"})
			present += fmt.Sprintf("%s: {version: v1.4.0, content: %s, assigned: %s, as: %s, policy: gateways}\n", device, content.Draw(r, "runs"), content.Draw(r, "assigned"),
				rapid.SampledFrom([]string{"gw-1", "gw-2"}).Draw(r, "as"))
		}
		add("present.yaml", "%s", present)
		in := parseChange(t, &archive).input(t)
		if rapid.Bool().Draw(r, "without a base") {
			in.Base = nil
		}
		plan := preview.Compare(in)
		data, err := json.Marshal(plan)
		if err != nil {
			r.Fatal(err)
		}
		for form, text := range map[string]string{
			"plan": planText(t, plan), "json": string(data), "comment": comment.Render(plan, comment.Options{}),
			"diff": diffText(t, preview.Look(in, "gw-1")) + diffText(t, preview.Look(in, "gw-2")),
		} {
			if found := secretWord.FindString(text); found != "" {
				r.Fatalf("%s has %q:\n%s\nof\n%s", form, found, text, txtar.Format(&archive))
			}
		}
	})
}
