package hooks

import (
	"fmt"
	"testing"
)

func TestTailHasWholeLines(t *testing.T) {
	for _, c := range []struct {
		writes []string
		want   string
	}{
		{[]string{"one\ntwo"}, "one\ntwo"},
		{[]string{"1234567890"}, "1234567890"},
		{[]string{"1234567890x"}, "234567890x"}, // there is no whole one
		{[]string{"12345678\nx\n"}, "x\n"},
		{[]string{"0123456789\n"}, "123456789\n"},
		{[]string{"one\n", "two\n", "three"}, "two\nthree"},
		{[]string{"long one\n", "a\n0123456\n"}, "0123456\n"},
	} {
		w := tail{max: 10}
		for _, s := range c.writes {
			fmt.Fprint(&w, s)
		}
		if got := string(w.bytes()); got != c.want {
			t.Errorf("of %q: %q, want %q", c.writes, got, c.want)
		}
	}
}
