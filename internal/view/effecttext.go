package view

import (
	"strings"

	"github.com/gitopsd/gitopsd/internal/preview"
)

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
	if len(e.Hooks) > 0 {
		words = append(words, "runs "+names(e.Hooks))
	}
	if len(e.Starts) > 0 {
		words = append(words, "starts "+names(e.Starts))
	}
	if len(e.Restarts) > 0 {
		words = append(words, "restarts "+names(e.Restarts))
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
