package schema

import (
	"slices"
	"testing"
)

func TestSecretLike(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"wifi_password", "hunter2", true}, {"apiKey", "abc", true}, {"x", "-----BEGIN EC PRIVATE KEY-----", true},
		{"token", "/run/secrets/token", false}, {"dns", "192.0.2.53", false}, {"tokens_per_minute", "60", false}, {"password", "", false},
		{"DBPASS", "hunter2", true}, {"MQTTPASSWORD", "hunter2", true}, {"ADMIN_PW", "hunter2", true}, {"dbPass", "hunter2", true}, {"DB_PASS2", "hunter2", true},
		{"ROOTPW", "hunter2", true}, {"REDISPWD", "hunter2", true}, {"STRIPEAPIKEY", "abc", true}, {"accesstoken", "abc", true},
		{"PASS", "connectivity", false}, {"bypass", "eth0", false}, {"LOWPASS", "20000", false}, {"highPass", "20000", false}, {"compass", "north", false},
		{"pass_through", "lan", false}, {"passwordless", "yes", false}, {"OLDPWD", "/root", false}, {"maxtokens", "40960", false},
	} {
		if got := SecretLike(c.name, c.value); got != c.want {
			t.Errorf("%s=%s: got %v", c.name, c.value, got)
		}
	}
}

func TestSecretVars(t *testing.T) {
	fleet := load(t, repoOf(`
-- policies/p.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Policy
metadata: {name: p}
spec: {targetVersion: v1.0.0}
-- releases/p/v1.0.0.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata: {name: v1.0.0}
spec: {}
-- overlays/o.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Overlay
metadata: {name: o}
spec: {vars: {dns: 192.0.2.53, db_password: overridden, api_token: shared}}
-- devices/a.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: a}
spec: {vars: {db_password: own}}
`))
	if got, want := fleet.SecretVars("a"), []string{"own", "shared"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := fleet.SecretVars("nobody"); got != nil {
		t.Errorf("of no device: %q", got)
	}
}
