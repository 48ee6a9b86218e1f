package schema

import "testing"

// Numbers are told as people write them.
func TestNumbersArePlain(t *testing.T) {
	for want, v := range map[string]any{"1000000": 1e6, "0.5": 0.5, "7": int64(7), "true": true, "1e+30": 1e30} {
		if got := plain(v); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
