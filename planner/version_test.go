package planner

import "testing"

func TestB58_VersionOrder(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"1.9", "1.10", "<"},
		{"v1.9.0", "v1.10.0", "<"},
		{"v1.2.3", "1.2.3", "="},
		{"1.2", "1.2.0", "="},
		{"1.2.3-rc.9", "1.2.3-rc.10", "<"},
		{"1.2.3-rc9", "1.2.3-rc10", ">"}, // words, as semver.org has it
		{"1.2.3", "1.2.3+b2", "="},
		{"1.2.3-rc.1+build", "1.2.3", "<"},
		{"v1.2.3-alpha", "v1.2.3-beta", "<"},
		{"v1.2.3-20260101", "v1.2.3-20260102", "<"},
		{"v0.0.0", "v0.0.1", "<"},
		{"v1.2.3-gamma.1", "v1.2.3", "<"},     // no git describe
		{"v1.2.3-rc-gdeadbee", "v1.2.3", "<"}, // no count before the hash
		{"2024.01.02", "2024.1.2", "?"},
		{"latest", "latest", "?"},
		{"72225e2", "72225e2", "?"},
		{"1234567", "1234567", "?"},
		{"", "v1.0.0", "?"},
		{"unknown", "v1.0.0", "?"},
		{"devel", "v1.0.0", "?"},
		{"(devel)", "v1.0.0", "?"},
		{"v1.4.0-3-gdeadbee", "v1.4.0", "?"},
		{"v1.4.0-3-gdeadbee-dirty", "v1.4.0", "?"},
		{"v1.5.0-rc.1-12-g0abc123", "v1.4.0", "?"},
		{"v1.4.0-dirty", "v1.4.0", "?"},
		{"vv1.4.0", "v1.4.0", "?"},
		{"v1.4.0 ", "v1.4.0", "?"},
		{"v1.4.0.1", "v1.4.0", "?"},
		{"v1.-4.0", "v1.4.0", "?"},
		{"99999999999999999999.0.0", "v1.4.0", "?"},
	} {
		if got := order(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: got %s, want %s", c.a, c.b, got, c.want)
		}
		back := map[string]string{"<": ">", ">": "<", "=": "=", "?": "?"}[c.want]
		if got := order(c.b, c.a); got != back {
			t.Errorf("%q to %q: got %s, want %s", c.b, c.a, got, back)
		}
	}
}

func order(a, b string) string {
	va, vb := parseVersion(a), parseVersion(b)
	if va == nil || vb == nil {
		return "?"
	}
	return map[int]string{-1: "<", 0: "=", 1: ">"}[va.Compare(vb)]
}

func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"v1.2.3", "1.2", "v1.4.0-3-gdeadbee-dirty", "-", "+", "v", "1.2-.", "1..2", "v1.2.3-rc.1+x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := parseVersion(s)
		if v == nil {
			return
		}
		if again := parseVersion(v.String()); again == nil || again.Compare(v) != 0 {
			t.Errorf("%q is %v, but that is %v", s, v, again)
		}
	})
}
