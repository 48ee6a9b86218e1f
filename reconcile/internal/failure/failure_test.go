package failure

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

func TestFrom(t *testing.T) {
	perm := Permanent("files", "/etc/x", "unknown user %s", "edge")
	for _, c := range []struct {
		err  error
		want schema.FailureClass
	}{
		{perm, schema.ClassPermanent},
		{fmt.Errorf("stage: %w", perm), schema.ClassPermanent},
		{errors.New("anything"), schema.ClassRetryable},
		{Permanent("files", "/etc/x", "write: %w", syscall.ENOSPC), schema.ClassRetryable},
		{Permanent("confirm", "", "no answer: %w", syscall.EIO), schema.ClassRetryable},
		{Deferred("hooks", "busy", "exit 75"), schema.ClassDeferred},
	} {
		if got := From(c.err).Class; got != c.want {
			t.Errorf("%v: class %s, want %s", c.err, got, c.want)
		}
	}
	if got := perm.Error(); got != "files /etc/x: unknown user edge" {
		t.Errorf("message %q", got)
	}
}

// What a person reads first is cut after some hundred characters: the cause
// stands within them, whatever it happened to.
func TestCauseComesFirst(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 4)
	long := "/srv/" + strings.Repeat("a-folder/", 40) + "file.conf"
	for _, c := range []struct {
		err  error
		want string
	}{
		{Retryable("files", "sha256:"+hex, "keep payload: %w", fmt.Errorf("write /var/lib/gitopsd/payload/%s: %w", hex, syscall.ENOSPC)),
			"files sha256:0123456789ab…: no space left on device (keep payload: write /var/lib/gitopsd/payload/0123456789ab…)"},
		{Retryable("files", "/etc/x", "write /etc/x: %w", syscall.EROFS), "files /etc/x: read-only file system (write /etc/x)"},
		{Retryable("files", "/etc/x", "%w", syscall.EIO), "files /etc/x: input/output error"},
		{Permanent("hooks", "afterUpdating/check", "exit code 1"), "hooks afterUpdating/check: exit code 1"},
		{Permanent("files", "/etc/x", "%s is in the way: %w, so it stays", "/etc", syscall.ENOTDIR), "files /etc/x: /etc is in the way: not a directory, so it stays"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	err := Retryable("files", long, "%w", fmt.Errorf("write %s: %w", long, syscall.ENOSPC))
	if got := err.Error(); !strings.Contains(got[:200], "no space left on device") || !strings.Contains(got[:200], "file.conf") || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%q", got)
	}
}

func TestJoin(t *testing.T) {
	if err := Join(nil, nil); err != nil {
		t.Errorf("nothing joined is %v", err)
	}
	one := Retryable("files", "/a", "no")
	if err := Join(nil, one); !errors.Is(err, one) {
		t.Errorf("one alone became %v", err)
	}
	err := Join(one, Permanent("files", "/b", "never: %w", syscall.EISDIR), Retryable("files", "/c", "no"))
	f := From(err)
	if f.Class != schema.ClassPermanent || f.Element != "/b" {
		t.Errorf("class %s of %s, want permanent of /b", f.Class, f.Element)
	}
	for _, part := range []string{"/a", "/b", "/c"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
	if !errors.Is(err, syscall.EISDIR) {
		t.Error("the parts cannot be asked for")
	}
}
