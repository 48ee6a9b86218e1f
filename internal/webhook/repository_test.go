package webhook

import (
	"net/http"
	"strings"
	"testing"
)

func TestTheWatchedRepository(t *testing.T) {
	for _, c := range []struct {
		url, name string
		said      repository
		want      bool
	}{
		{url: "https://github.com/acme/fleet.git", said: repository{FullName: "acme/fleet"}, want: true},
		{url: "https://github.com/acme/fleet", said: repository{FullName: "Acme/Fleet"}, want: true},
		{url: "https://x-access-token:abc@github.com/acme/fleet/", said: repository{FullName: "acme/fleet"}, want: true},
		{url: "git@github.com:acme/fleet.git", said: repository{FullName: "acme/fleet"}, want: true},
		{url: "ssh://git@ssh.github.com:443/acme/fleet.git", said: repository{FullName: "acme/fleet"}, want: true},
		{url: "https://host.example/git/acme/fleet.git", said: repository{FullName: "acme/fleet"}, want: true},
		{url: "https://github.com/acme/fleet.git", said: repository{FullName: "acme/other"}},
		{url: "https://github.com/acme/fleet.git", said: repository{FullName: "evil/acme/fleet"}},
		{url: "https://github.com/acme/fleet.git", said: repository{FullName: "fleet"}},
		{url: "https://github.com/acme/fleet.git", said: repository{FullName: "me/fleet"}},
		{url: "https://github.com/acme/fleet.git", said: repository{FullName: "/"}},
		{url: "https://github.com/acme/fleet.git", said: repository{CloneURL: "https://GitHub.com:443/acme/fleet.git"}, want: true},
		{url: "https://github.com/acme/fleet.git", said: repository{SSHURL: "git@github.com:acme/fleet.git"}, want: true},
		{url: "https://github.com/acme/fleet.git", said: repository{HTMLURL: "https://github.com/acme/fleet"}, want: true},
		{url: "https://github.com/acme/fleet.git", said: repository{CloneURL: "https://evil.example/acme/fleet.git"}},
		{url: "https://github.com/acme/fleet.git", said: repository{CloneURL: "https://github.com:8443/acme/fleet.git"}},
		{url: "http://127.0.0.1:3000/fleet.git", said: repository{FullName: "fleet"}, want: true},
		{url: "http://127.0.0.1:3000/fleet.git", said: repository{FullName: "x/y", CloneURL: "http://127.0.0.1:3000/fleet.git"}, want: true},
		{url: "/srv/git/fleet.git", said: repository{CloneURL: "/srv/git/fleet.git"}, want: true},
		{url: "/srv/git/fleet.git", said: repository{CloneURL: "file:///srv/git/fleet.git"}, want: true},
		{url: "/srv/git/fleet.git", said: repository{FullName: "acme/fleet"}},
		{url: "/srv/git/fleet.git", name: "acme/fleet", said: repository{FullName: "acme/fleet"}, want: true},
		{url: "https://github.com/acme/fleet.git", name: "acme/real", said: repository{FullName: "acme/fleet"}},
		{url: "https://github.com/acme/fleet.git", name: "acme/real", said: repository{CloneURL: "https://github.com/acme/fleet.git"}},
		{url: "", said: repository{FullName: "acme/fleet"}},
		{url: "", said: repository{CloneURL: "https://"}},
	} {
		if got := newWatched(c.url, c.name).is(c.said); got != c.want {
			t.Errorf("%q called %q is %+v: %v", c.url, c.name, c.said, got)
		}
	}
	b := newBench(t, func(c *Config) { c.URL = "https://git.example.com/acme/another.git" })
	for range 3 {
		b.want(b.request("push", pushBody("refs/heads/main", commitA, commitB)), http.StatusAccepted, "")
		b.want(b.request("pull_request", pullBody("opened", "main", "")), http.StatusAccepted, "")
	}
	if said := b.logs.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "webhook.repository") {
		t.Errorf("another repository is said like this:\n%s", said)
	}
}
