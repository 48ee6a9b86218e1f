package repo

import (
	"strings"
	"testing"
)

// A copy that systemd has made is read again in vain.
func TestRejectedCopyOfSystemd(t *testing.T) {
	for c, want := range map[Credentials]bool{
		{PasswordFile: "/run/credentials/gitopsd-agent.service/gitopsd_token"}: true,
		{TokenFile: "/run/credentials/gitopsd.service/gitopsd_token"}:          true,
		{PasswordFile: "/etc/edge/token"}:                                      false,
		{}:                                                                     false,
	} {
		if got := strings.Contains(c.kept(), "restart"); got != want {
			t.Errorf("%+v: %q", c, c.kept())
		}
	}
}
