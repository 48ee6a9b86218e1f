package view

import (
	"fmt"
	"strings"

	"github.com/gitopsd/gitopsd/internal/preview"
)

// BeforeText says what a change is compared with, where that is not plainly what
// the base wants; "" = it is.
func BeforeText(g *preview.Group) string {
	switch {
	case g.Before == preview.BeforeNothing:
		return "nothing of the fleet is there yet: all of " + g.To + " comes"
	case g.Before == preview.BeforeAssigned:
		return "compared with what was assigned already and does not run yet"
	case g.Before == preview.BeforeUnread:
		return "what runs there cannot be read here: compared with what the base wants"
	case g.Wanted != "":
		return "what the base wants (" + g.Wanted + ") does not run there yet: this is all that comes"
	}
	return ""
}

// NoChangesText says why a group has no changes, where nothing else does.
func NoChangesText(g *preview.Group) string {
	switch {
	case g.Unknown:
		return "from a spec that cannot be read here"
	case g.Effect.Already, g.Before == preview.BeforeNothing:
		return ""
	}
	return "the same content under another version"
}

// EffectText says what n devices do about a change; "" = nothing to speak of.
// names writes what comes from the repository as its reader needs it.
func EffectText(e *preview.Effect, n int, names func([]string) string) string {
	if e.Observes {
		return "only compared, nothing on the device changes"
	}
	if e.Already {
		if n > 1 {
			return "nothing: they run that already"
		}
		return "nothing: it runs that already"
	}
	var words []string
	if e.Applies {
		words = append(words, "applies what was only compared before")
	}
	if e.Again {
		words = append(words, "the version stays: updated again")
	}
	for _, l := range []struct {
		does string
		list []string
	}{
		{"runs", e.Hooks},
		{"starts", e.Starts},
		{"restarts", e.Restarts},
		{"reloads", e.Reloads},
		{"stops", e.Stops},
		{"stops and removes", e.Removes},
		{"puts back", e.PutsBack},
	} {
		if len(l.list) > 0 {
			words = append(words, l.does+" "+names(l.list))
		}
	}
	if e.Reboot != "" {
		words = append(words, "reboots into "+names([]string{e.Reboot}))
	}
	if d := e.Download; d.Most > 0 {
		text := "downloads "
		if d.Bound {
			text += "at most "
		}
		if d.Least != d.Most && !d.Bound { // at most is from nothing on
			text += BytesText(d.Least) + " to "
		}
		text += BytesText(d.Most)
		if n > 1 {
			text += " each, " + BytesText(d.Total) + " in all"
		}
		words = append(words, text)
	}
	return strings.Join(words, " · ")
}

// effectNames names what an effect is about.
func effectNames(list []string) string {
	text := Clean(strings.Join(list[:min(len(list), shownChanges)], ", "))
	if more := len(list) - shownChanges; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
