package view

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// KindDeviceHistory is the kind of a [DeviceHistory].
const KindDeviceHistory schema.Kind = "DeviceHistory"

// DeviceHistory is what happened to one device.
type DeviceHistory struct {
	schema.TypeMeta
	Device       string `json:"device"`
	Path         string `json:"path"` // of its status now
	StatusCommit string `json:"statusCommit"`
	// Since and Until are the bounds that were asked for.
	Since *time.Time `json:"since,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	// Commits is how many commits of the status branch were looked at.
	Commits int `json:"commits"`
	// Whole says that nothing older is left out: the history was read to its
	// beginning, or to Since. Why says why it was not.
	Whole  bool    `json:"whole"`
	Why    string  `json:"why,omitempty"`
	Events []Event `json:"events"` // newest first
}

// Between keeps the events of a time; nil bounds are open.
func Between(events []Event, since, until *time.Time) []Event {
	list := []Event{}
	for i := range events {
		at := events[i].Time
		if since != nil && at.Before(*since) || until != nil && !at.Before(*until) {
			continue
		}
		list = append(list, events[i])
	}
	return list
}

// WriteHistory writes a history as text, newest first: on a wide terminal as a
// table, on a narrow one an event in lines of its own.
func WriteHistory(w io.Writer, h *DeviceHistory, look Look) error {
	var b bytes.Buffer
	table := Table{Head: []string{"TIME", "EVENT", "COMMIT", "WHAT"}, Spare: []string{"COMMIT", "EVENT"}}
	for i, at := range stamps(h.Events) {
		e := &h.Events[i]
		table.Row(at, e.Kind, or(Short(e.Commit), "-"), e.Text)
		table.Paint(1, e.color())
	}
	// Less room than this for the words makes a column of single words.
	const roomy = 100
	switch {
	case table.Empty():
		fmt.Fprintln(&b, look.hang("nothing happened to "+Clean(h.Device)+boundsText(h), 2))
	case look.Width == 0 || look.Width >= roomy:
		if err := table.Write(&b, look); err != nil {
			return err
		}
	default:
		for i, at := range stamps(h.Events) {
			e := &h.Events[i]
			head := at + " " + e.Kind
			if e.Commit != "" {
				head += " (" + Short(e.Commit) + ")"
			}
			fmt.Fprintln(&b, look.paint(e.color(), head))
			fmt.Fprintf(&b, "  %s\n", look.hang(Clean(e.Text), 2))
		}
	}
	if !h.Whole {
		fmt.Fprintln(&b, look.hang("… there is more before this: "+Clean(h.Why), 2))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func boundsText(h *DeviceHistory) string {
	text := ""
	if h.Since != nil {
		text += " since " + h.Since.UTC().Format(time.RFC3339)
	}
	if h.Until != nil {
		text += " until " + h.Until.UTC().Format(time.RFC3339)
	}
	if text != "" {
		return text + " (" + counted(h.Commits, "commit") + " looked at)"
	}
	return text
}

// color is that of the kind of an event.
func (e *Event) color() string {
	switch e.Kind {
	case EventEnded:
		switch e.Outcome {
		case schema.OutcomeOK:
			return colorGood
		case schema.OutcomeFailed, schema.OutcomeLost, schema.OutcomeRefused:
			return colorBad
		}
		return colorBusy
	case EventAssigned, EventStarted:
		return colorBusy
	case EventRemoved, EventReleased, EventReturned, EventVerdict, EventMoved:
		return ""
	case EventHeld, EventRecalled, EventInstalled, EventOffline:
		return colorBusy
	}
	return ""
}
