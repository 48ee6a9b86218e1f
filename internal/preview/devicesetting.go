package preview

import (
	"cmp"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// settings are what the files of devices say otherwise than before, where that
// shows in no spec: a hold alone changes nothing that a device should be. What
// was assigned tells nothing of it.
func (c *comparer) settings() []DeviceSetting {
	list := []DeviceSetting{}
	if c.Base == nil {
		return list
	}
	for _, h := range c.Head.Fleet.Devices {
		if h.Device == nil {
			continue
		}
		var before schema.DeviceSpecFields
		if b := c.Base.Fleet.Member(h.ID); b != nil && b.Device != nil {
			before = b.Device.Spec
		}
		after := &h.Device.Spec
		say := func(field, words string) {
			if words != "" {
				list = append(list, DeviceSetting{Device: h.ID, Field: field, Words: words})
			}
		}
		say("hold", holdWords(before.Hold, after.Hold))
		say("pin", pinWords(before.Pin, after.Pin))
		say("forgetFailuresBefore", forgetWords(before.ForgetFailuresBefore, after.ForgetFailuresBefore))
	}
	slices.SortStableFunc(list, func(a, b DeviceSetting) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Words, b.Words), cmp.Compare(a.Device, b.Device))
	})
	return list
}

func holdWords(before, after *schema.Reason) string {
	switch {
	case after == nil && before == nil:
		return ""
	case after == nil:
		return "no longer held"
	case before == nil || before.Reason != after.Reason:
		return "held: " + after.Reason
	}
	return ""
}

func pinWords(before, after string) string {
	switch {
	case before == after:
		return ""
	case after == "":
		return "no longer pinned to " + before
	case before == "":
		return "pinned to " + after
	}
	return "pinned to " + after + " instead of " + before
}

func forgetWords(before, after *time.Time) string {
	switch {
	case after == nil && before == nil, after != nil && before != nil && after.Equal(*before):
		return ""
	case after == nil:
		return "failures count that were forgotten"
	}
	return "failures before " + after.UTC().Format(time.RFC3339) + " are forgotten"
}

// AlikeSettings are the devices at the beginning of a list of settings of
// which the same is said.
func AlikeSettings(list []DeviceSetting) []string {
	var ids []string
	for _, s := range list {
		if s.Words != list[0].Words {
			break
		}
		ids = append(ids, s.Device)
	}
	return ids
}
