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
