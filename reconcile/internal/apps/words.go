package apps

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/units"
)

const (
	// wordLines are told of what containers have written, in lines: a trace with
	// what was before it.
	wordLines = 60
	// wordsOf is of how many containers.
	wordsOf = 10
)

// words are the end of what an application has written since it was switched,
// or since it was started where that is longer ago: of the unit or the container
// that is to blame, and of all of them where none is.
func (c *Controller) words(ctx context.Context, p *patient) string {
	if p.units[0].Kind == composeKind { // others write into the journal of its unit
		list := p.containers
		if p.sickContainer != "" {
			list = []string{p.sickContainer}
		}
		if said := c.containerWords(ctx, list); said != "" {
			return said
		}
	}
	of := units.Starts{Units: active(p.units), Since: c.began}
	if p.sick != "" {
		of.Units = []string{p.sick}
	}
	for _, name := range of.Units {
		of.Running = append(of.Running, p.seen[name].Invocation)
	}
	return c.Journal(ctx, of)
}

// containerWords are what containers have written in both of their streams: most
// programs tell their end in the second one. What podman itself warns of goes
// there, too, and is none of theirs.
func (c *Controller) containerWords(ctx context.Context, names []string) string {
	const script = `exec podman --log-level=error logs --tail "$2" ${3:+--since "$3"} "$1" 2>&1`
	names = names[:min(len(names), wordsOf)]
	var all []string
	for _, name := range names {
		tail := fmt.Sprint(wordLines / len(names))
		age := (units.Clock() - c.began).Truncate(time.Second) + time.Second
		var out string
		for _, since := range []string{age.String(), ""} { // one that was not made anew may be silent since
			var err error
			if out, err = c.Run(ctx, []string{"sh", "-c", script, "sh", name, tail, since}, "/", nil, podmanLimit, maxListed); err != nil {
				out = said(err)
			}
			if out = strings.TrimSpace(out); out != "" {
				break
			}
		}
		if out != "" && len(names) > 1 {
			out = name + " | " + strings.ReplaceAll(out, "\n", "\n"+name+" | ") // with a colon it would look like a setting
		}
		if out != "" {
			all = append(all, out)
		}
	}
	return strings.Join(all, "\n")
}
