package schema

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/gitopsd/gitopsd/internal/seal"
)

// sealedFor encrypts a text as people do.
func sealedFor(t testing.TB, text string, recipients ...age.Recipient) string {
	t.Helper()
	sealed, err := seal.Encrypt([]byte(text), recipients...)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func newRecipient(t testing.TB) *age.X25519Recipient {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id.Recipient()
}

// otherKind is a recipient of a kind that is not known here, as that of a
// plugin.
type otherKind struct{}

func (otherKind) Wrap([]byte) ([]*age.Stanza, error) {
	return []*age.Stanza{{Type: "piv-p256", Args: []string{"abcd"}, Body: []byte("x")}}, nil
}

// inArmor is any bytes in the text form of age.
func inArmor(data string) string {
	text := base64.StdEncoding.EncodeToString([]byte(data))
	lines := slices.Collect(slices.Chunk([]byte(text), 64))
	return armor.Header + "\n" + string(bytes.Join(lines, []byte("\n"))) + "\n" + armor.Footer + "\n"
}

// hunter is what stands in a repository by mistake: no problem may repeat it.
const hunter = "hunter2hunter2"

func TestSealedTrouble(t *testing.T) {
	key := newRecipient(t)
	good := sealedFor(t, hunter, key)
	passphrase, err := age.NewScryptRecipient("x")
	if err != nil {
		t.Fatal(err)
	}
	passphrase.SetWorkFactor(1)
	raw, err := io.ReadAll(armor.NewReader(strings.NewReader(good)))
	if err != nil {
		t.Fatal(err)
	}
	header, _, _ := bytes.Cut(raw, []byte("\n---"))
	var many []age.Recipient
	for range 2000 {
		many = append(many, otherKind{})
	}
	for name, c := range map[string]struct{ text, want string }{
		"good":               {good, ""},
		"two":                {sealedFor(t, hunter, key, newRecipient(t)), ""},
		"one of them other":  {sealedFor(t, hunter, key, otherKind{}), ""},
		"blank lines around": {"\n" + good + "\n\n", ""},
		"windows":            {strings.ReplaceAll(good, "\n", "\r\n"), ""},
		"empty content":      {sealedFor(t, "", key), ""},
		"nothing":            {"", "not encrypted"},
		"plain":              {hunter, "not encrypted"},
		"plain before":       {hunter + "\n" + good, "not encrypted"},
		"plain behind":       {good + hunter, "text form"},
		"plain within":       {strings.Replace(good, "\n", "\n"+hunter+" "+hunter+"\n", 1), "text form"},
		"plain in armor":     {inArmor(hunter), "header"},
		"one line":           {strings.ReplaceAll(good, "\n", " "), "line breaks"},
		"no end":             {strings.Replace(good, armor.Footer, "", 1), "text form"},
		"two files":          {good + good, "text form"},
		"header alone":       {inArmor(string(header) + "\n--- " + strings.Repeat("A", 43) + "\n"), "cut off"},
		"half a header":      {inArmor(string(header)), "header"},
		"an identity":        {"AGE-SECRET-KEY-1" + hunter, "private key"},
		"an identity behind": {good + "AGE-SECRET-KEY-1" + hunter, "private key"},
		"a key of ssh":       {"-----BEGIN OPENSSH PRIVATE KEY-----\n" + hunter, "private key"},
		"passphrase":         {sealedFor(t, hunter, passphrase), "passphrase"},
		"other kinds":        {sealedFor(t, hunter, otherKind{}), "kind of key"},
		"large":              {sealedFor(t, strings.Repeat("x", MaxSecret), key), "more than"},
		"many recipients":    {sealedFor(t, hunter, many[:1000]...), "kind of key"},
		"more recipients":    {inArmor("age-encryption.org/v1\n" + strings.Repeat("-> x\n\n", 5000) + "--- " + strings.Repeat("A", 43) + "\n"), "header"},
		"a long line":        {armor.Header + "\n" + strings.Repeat("A", MaxSecret-100), "text form"},
		"blanks":             {strings.Repeat(" ", MaxSecret-100) + "\n" + good, "more than"},
	} {
		msg, hint := sealedTrouble(c.text)
		if !strings.Contains(msg, c.want) || (msg == "") != (c.want == "") {
			t.Errorf("%s: got %q, want %q", name, msg, c.want)
		}
		if (msg == "") != (hint == "") || strings.Contains(msg+hint, hunter) {
			t.Errorf("%s: %q, hint %q", name, msg, hint)
		}
	}
}

// Whatever stands where a secret should: one problem says so, at its place, and
// repeats nothing of it.
func TestSealedIsNotRepeated(t *testing.T) {
	const digits = "8675309867530986753098675309"
	for _, value := range []string{
		hunter, digits, digits[:9], "0" + digits[:6], "[" + hunter + "]", "{" + hunter + ": 1}", "true", "1e999", "null_" + hunter,
		`"` + strings.Repeat(hunter, 6000) + `"`, "AGE-SECRET-KEY-1" + hunter, `""`,
		"&" + hunter, "!" + hunter, "!!binary " + hunter, "!!int " + hunter, "&" + hunter + " {}", "&" + hunter + " !" + hunter + " [x]",
		"{" + digits[:9] + ": 1}", "{" + hunter + ": 1, " + hunter + ": 2}", "[0" + digits[:8] + "]", "[" + digits + "]", "[&a " + hunter + ", *a]", "{? [" + hunter + "] : x}",
		"2026-11-30", "0x" + digits[:8], "|\n          " + hunter, "\n          " + hunter + "\n          " + hunter,
	} {
		for path, text := range map[string]string{
			"releases/gateways/v1.5.0.yaml": "kind: Release\nmetadata: {name: v1.5.0}\nspec:\n  files:\n    /etc/password:\n      secret: " + value + "\n",
			"devices/gw-1.yaml":             "kind: Device\nmetadata: {name: gw-1, labels: {role: gateway}}\nspec:\n  desired:\n    files:\n      /etc/password:\n        secret: " + value + "\n",
		} {
			problems := load(t, repoOf(ruleFleet).with(path, "apiVersion: gitopsd.dev/v1alpha1\n"+text)).Problems
			if len(problems) != 1 || problems[0].Rule != ruleSealed || problems[0].File != path || problems[0].Line < 6 || problems[0].Hint == "" {
				t.Errorf("secret: %.40s in %s:\n%s", value, path, lines(problems))
			}
			if all := lines(problems) + fmt.Sprint(problems); strings.Contains(all, "hunter2") || strings.Contains(all, digits[:7]) {
				t.Errorf("secret: %.40s in %s is repeated:\n%s", value, path, all)
			}
		}
	}
}

// A variable with the name of a secret is not repeated either, whatever is wrong
// with it.
func TestSecretVariablesAreNotRepeated(t *testing.T) {
	const digits = "8675309867530986753098675309"
	for _, value := range []string{
		digits[:9], digits, "0" + digits[:8], "1e9" + digits[:5], "[" + hunter + "]", "[0" + digits[:8] + "]", "{" + hunter + ": 1, " + hunter + ": 2}", "{" + digits[:9] + ": 1}",
		`"` + strings.Repeat(hunter, 6000) + `"`, "&" + hunter + " x", "!" + hunter + " x", "*" + hunter,
	} {
		text := "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1, labels: {role: gateway}}\nspec:\n  vars:\n    joinPassword: " + value + "\n"
		problems := load(t, repoOf(ruleFleet).with("devices/gw-1.yaml", text)).Problems
		if len(problems) != 1 || problems[0].Line != 6 || problems[0].Hint == "" {
			t.Errorf("joinPassword: %.40s:\n%s", value, lines(problems))
		}
		if all := lines(problems) + fmt.Sprint(problems); strings.Contains(all, "hunter2") || strings.Contains(all, "8675") {
			t.Errorf("joinPassword: %.40s is repeated:\n%.1000s", value, all)
		}
	}
	text := "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1, labels: {role: gateway}}\nspec: {vars: {my join_password: x}}\n"
	if problems := load(t, repoOf(ruleFleet).with("devices/gw-1.yaml", text)).Problems; len(problems) != 1 || problems[0].Rule != ruleForm || !strings.Contains(problems[0].Message, "my join_password") {
		t.Errorf("of a name:\n%s", lines(problems))
	}
	_, slips := ReadCompose("web", []byte("services:\n  web:\n    image: x\n    environment:\n      PASSWORD: *hunter2\n"))
	if len(slips) != 1 || slips[0].Line != 5 || strings.Contains(fmt.Sprint(slips), "hunter2") || strings.Contains(fmt.Sprint(slips), "not allowed") {
		t.Errorf("of a compose file: %+v", slips)
	}
	if _, err := KubeImages([]byte("kind: Secret\nstringData: {password: *hunter2}\n")); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("of a Kubernetes file: %v", err)
	}
}

// What is no YAML any more may have any problem, and none repeats anything of a
// value.
func TestSealedIsNotRepeated_NoYAML(t *testing.T) {
	for _, value := range []string{
		"*" + hunter, "[*" + hunter + "]", "&" + hunter + " *" + hunter, "&a " + hunter + "\n      content: *" + hunter, "@" + hunter, "%" + hunter, "`" + hunter,
		hunter + ": " + hunter, "'" + hunter, `"hunter2\hunter2"`, "{" + hunter, "- " + hunter, "? " + hunter, ">" + hunter, "|" + hunter, "\t" + hunter, "!a!" + hunter + " x",
		hunter + "\n      secret: " + hunter, "|\n      " + hunter, "|\n\t" + hunter, "<<: " + hunter, "!<" + hunter, "\"" + hunter + "\n---\n" + hunter,
	} {
		text := "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec:\n  files:\n    /etc/password:\n      secret: " + value + "\n"
		problems := load(t, repoOf(ruleFleet).with("releases/gateways/v1.5.0.yaml", text)).Problems
		if all := lines(problems) + fmt.Sprint(problems); len(problems) == 0 || strings.Contains(all, "hunter2") {
			t.Errorf("secret: %.40q: %d problems, and it is repeated:\n%s", value, len(problems), all)
		}
	}
}

// An alias of nothing is told at its place, and by the rule of all aliases.
func TestAliasOfNothing(t *testing.T) {
	_, problems := readDocument([]byte("a: 2*bc\n# *bc\nb: [x, *b, *bc]\nc: &bc x\n"))
	if len(problems) != 1 || problems[0].Rule != ruleAlias || problems[0].Line != 3 || problems[0].Column != 8 || strings.Contains(problems[0].Message, "bc") {
		t.Errorf("got %+v", problems)
	}
}

// A secret is one of the contents that a file can have, and takes the place of
// another in a part; a template it cannot be, whichever part says so.
func TestSealedIsAContent(t *testing.T) {
	key := newRecipient(t)
	one, other := sealedFor(t, "one", key), sealedFor(t, "other", key)
	for _, c := range []struct{ release, device, want string }{
		{fmt.Sprintf("{secret: %q}", one), fmt.Sprintf("{secret: %q}", other), ""},
		{"{content: hello}", fmt.Sprintf("{secret: %q}", other), ""},
		{fmt.Sprintf("{secret: %q}", one), "{content: hello}", ""},
		{fmt.Sprintf("{secret: %q}", one), "{mode: '0640', owner: edge, restart: [edge.service]}", ""},
		{fmt.Sprintf("{secret: %q, content: hello}", one), "{}", ruleContent},
		{fmt.Sprintf("{secret: %q, template: true}", one), "{}", ruleSealed},
		{"{content: hello, template: true}", fmt.Sprintf("{secret: %q}", other), ruleSealed},
		{"{content: hello, template: true}", fmt.Sprintf("{secret: %q, template: false}", other), ""},
		{fmt.Sprintf("{secret: %q}", one), "{template: true}", ruleSealed},
	} {
		fleet := load(t, repoOf(ruleFleet).
			with("releases/gateways/v1.5.0.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: {files: {/etc/password: "+c.release+"}}\n").
			with("devices/gw-1.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1, labels: {role: gateway}}\nspec: {desired: {files: {/etc/password: "+c.device+"}}}\n"))
		if got := ruleOf(fleet.Problems); got != c.want {
			t.Errorf("%.40s and %.40s: got %q, want %q\n%s", c.release, c.device, got, c.want, lines(fleet.Problems))
			continue
		}
		if c.want != "" {
			continue
		}
		r := fleet.Member("gw-1").Rendered
		spec, err := DecodeSpec(r.Spec)
		if err != nil {
			t.Fatal(err)
		}
		f := spec.Files["/etc/password"]
		if (f.Secret == "") == (f.Content == nil) || f.Template || slices.Contains(r.Needs, NeedsSecret) != (f.Secret != "") {
			t.Errorf("%.40s and %.40s: rendered %+v, needs %v", c.release, c.device, f, r.Needs)
		}
	}
}

func ruleOf(problems []Problem) string {
	for _, p := range problems {
		if p.Severity == SeverityError {
			return p.Rule
		}
	}
	return ""
}

// FuzzSealed: what is accepted is an age file for a key that a device can have,
// and what is not accepted is not repeated.
func FuzzSealed(f *testing.F) {
	good := sealedFor(f, hunter, newRecipient(f))
	for _, text := range []string{good, good + "x", inArmor(hunter), hunter, armor.Header + "\n" + armor.Footer, strings.ReplaceAll(good, "\n", "\r\n")} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		msg, hint := sealedTrouble(text)
		if again, _ := sealedTrouble(text); again != msg || (msg == "") != (hint == "") {
			t.Fatalf("%q, then %q, hint %q", msg, again, hint)
		}
		if msg != "" {
			return
		}
		var kinds *age.NoIdentityMatchError
		if _, err := age.Decrypt(armor.NewReader(strings.NewReader(text)), nobody{}); !errors.As(err, &kinds) || len(text) > MaxSecret {
			t.Fatalf("%q is accepted: %v", text, err)
		}
	})
}
