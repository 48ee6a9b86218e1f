package reconcile

import (
	"context"
	"log/slog"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/secrets"
	"github.com/gitopsd/gitopsd/schema"
)

// What programs say goes into records, reports and the log. They know the
// secrets of the spec, so that those are taken out of it before.

// rememberSecrets has the secrets of the specs that programs here may have read
// remembered, behind a start. From then on each is when it is opened, which
// comes before it is written.
func (a *Agent) rememberSecrets() {
	for _, of := range []func() (*schema.Spec, error){a.store.currentSpec, func() (*schema.Spec, error) {
		_, spec, err := a.store.desiredRecord()
		return spec, err
	}} {
		if spec, err := of(); err == nil {
			a.files.Learn(spec)
		}
	}
}

// said is the message of an error as it may be told.
func (a *Agent) said(err error) string { return failure.Told(err, a.texts.Strike) }

// discreetly takes out of a report what programs have put into it.
func (a *Agent) discreetly(r *schema.Report) {
	texts := []*string{&r.Reason, &r.DriftReason, &r.BusyReason}
	for i := range r.Failures {
		texts = append(texts, &r.Failures[i].Message)
	}
	for i := range r.Applications {
		texts = append(texts, &r.Applications[i].Reason)
	}
	for _, text := range texts {
		*text = a.texts.Strike(*text)
	}
}

// discreet is a log in which no secret stands.
type discreet struct {
	slog.Handler
	texts *secrets.Texts
}

func (h *discreet) Handle(ctx context.Context, r slog.Record) error {
	told := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		told.AddAttrs(h.told(a))
		return true
	})
	return h.Handler.Handle(ctx, told)
}

func (h *discreet) told(a slog.Attr) slog.Attr {
	if err, is := a.Value.Any().(error); is {
		return slog.String(a.Key, failure.Told(err, h.texts.Strike))
	}
	if a.Value.Kind() == slog.KindString {
		return slog.String(a.Key, h.texts.Strike(a.Value.String()))
	}
	return a
}

func (h *discreet) WithAttrs(attrs []slog.Attr) slog.Handler {
	told := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		told[i] = h.told(a)
	}
	return &discreet{h.Handler.WithAttrs(told), h.texts}
}

func (h *discreet) WithGroup(name string) slog.Handler {
	return &discreet{h.Handler.WithGroup(name), h.texts}
}
