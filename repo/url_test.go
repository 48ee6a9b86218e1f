package repo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/repo"
)

// A mistyped URL is refused, or its address is shown without what may be a
// password; it is never taken for the path on a host "user", or for a folder.
func TestMistypedURLs(t *testing.T) {
	const secret = "Zq7Xv9"
	for _, u := range []string{
		"http://u:p/Zq7Xv9@h/x", "http://u:1/Zq7Xv9@h/x", "ssh://u:1/Zq7Xv9@h/x", "https:/u:Zq7Xv9@h/x", "HTTPS:/u:Zq7Xv9@h/x", "htps:/u:p/Zq7Xv9@h/x",
		"http:///u:Zq7Xv9@h", "u:Zq7Xv9@h/x", "u:p/Zq7Xv9@h/x", "ops:Zq7Xv9@h:repo", "me@x:p/Zq7Xv9@h:repo", "//u:Zq7Xv9@h/x", "https//u:Zq7Xv9@h/x",
		"Zq7Xv9@h/x", "h/x?token=Zq7Xv9", "http://h/r?token=Zq7Xv9", "http://h/r#Zq7Xv9", "ssh://h/r?Zq7Xv9", "git@h:r?token=Zq7Xv9",
	} {
		d, err := repo.OpenDevice(repo.Config{URL: u})
		said := fmt.Sprint(err)
		if err == nil {
			said = d.URL()
			d.Close()
		}
		if strings.Contains(said, secret) || strings.Contains(said, "no such file") {
			t.Errorf("%s: %s", u, said)
		}
	}
	for u, want := range map[string]string{
		"https://ops@h/a/r.git": "https://h/a/r.git", "http://h:80/r": "http://h:80/r", "https://h/r@v1": "https://h/r@v1", "git@h:a/r.git": "ssh://h/a/r.git",
		"ssh://git@h:22/a@b/": "ssh://…/b", "http://h": "http://h",
	} {
		d, err := repo.OpenDevice(repo.Config{URL: u})
		if err != nil {
			t.Errorf("%s: %v", u, err)
			continue
		}
		if got := d.URL(); got != want {
			t.Errorf("%s is shown as %s, want %s", u, got, want)
		}
		d.Close()
	}
}
