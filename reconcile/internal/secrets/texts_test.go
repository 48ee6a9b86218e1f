package secrets

import (
	"strings"
	"testing"
)

func TestTexts(t *testing.T) {
	var texts Texts
	for _, plain := range []string{
		"correct horse battery staple\n",
		"  marlin swims deep  \r\nshort\n\nmqtt-login=tuna and sardine\nport: \"18830\"\n{\"token\": \"pike-perch\",\n",
		"name = x = trout\n", "correct horse battery", "",
		`{"auths": {"at": {"user": "edge", "password": "hunter22"}}}`, "host=db user=tester password=catfish-cod",
	} {
		texts.Remember([]byte(plain))
		texts.Remember([]byte(plain))
	}
	for text, want := range map[string]string{
		"":     "",
		"fine": "fine",
		"refused for correct horse battery staple, twice: correct horse battery staple": "refused for [secret], twice: [secret]",
		"correct horse battery is another":                                              "[secret] is another",
		"correct horse":                                                                 "correct horse",
		"marlin swims deep":                                                             "[secret]",
		"short it is":                                                                   "short it is",
		"Ignoring invalid environment assignment 'mqtt-login=tuna and sardine'": "Ignoring invalid environment assignment '[secret]'",
		"as tuna and sardine?":        "as [secret]?",
		"pike-perch at port 18830":    "[secret] at port 18830",
		`{"token": "pike-perch",`:     "[secret]",
		"of x = trout":                "of [secret]",
		"hunter22 of edge-db was bad": "[secret] of edge-db was bad",
		"no catfish-cod, user tester": "no [secret], user [secret]",
	} {
		if got := texts.Strike(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	var none *Texts
	if got := none.Strike("fine") + new(Texts).Strike("fine"); got != "finefine" {
		t.Errorf("without any: %q", got)
	}
}

// What is remembered is bounded, and the newest stays.
func TestTextsAreBounded(t *testing.T) {
	var texts Texts
	texts.Remember([]byte("the very first of all"))
	for i := range 2 + maxTexts>>20 {
		texts.Remember([]byte(strings.Repeat(string(rune('a'+i)), 1<<20)))
	}
	texts.Remember([]byte("the very last of all"))
	if texts.size > maxTexts || len(texts.order) != len(texts.texts) {
		t.Errorf("%d bytes of %d texts, %d in order", texts.size, len(texts.texts), len(texts.order))
	}
	for text, want := range map[string]string{"the very first of all": "the very first of all", "the very last of all": "[secret]"} {
		if got := texts.Strike(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
