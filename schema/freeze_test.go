package schema

import "testing"

// A time that cannot be read is one error, and says nothing of the order.
func TestFreezeWithoutTime(t *testing.T) {
	for _, to := range []string{"2026-12-31T23:59:60Z", "2026-12-31t23:59:59z", "0000-01-01T00:00:00Z", "2026-11-01T00:00:00Z"} {
		var p Policy
		problems := Decode("p.yaml", []byte("apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec: {enabled: true, selector: {}, targetVersion: v1.0.0, "+
			`freezes: [{from: "2026-12-01T00:00:00Z", to: "`+to+`"}]}`+"\n"), &p)
		if len(problems) != 1 {
			t.Errorf("%s: %s", to, lines(problems))
		}
	}
}
