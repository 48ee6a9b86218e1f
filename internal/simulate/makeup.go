package simulate

import (
	"fmt"

	"github.com/gitopsd/gitopsd/planner"
)

// MakeUp gives an input with n devices in the proportions of those in another
// one: each is like one of them but for its id, and knows nothing of attempts.
// An input without devices stays without.
func MakeUp(in planner.Input, n int) planner.Input {
	var samples []planner.Device
	for i := range in.Devices {
		if !in.Devices[i].Removed {
			samples = append(samples, in.Devices[i])
		}
	}
	in.Devices = nil
	if len(samples) == 0 {
		return in
	}
	in.Devices = make([]planner.Device, n)
	for i := range n {
		d := samples[i*len(samples)/n]
		d.ID = fmt.Sprintf("%s-%0*d", d.ID, len(fmt.Sprint(n)), i+1)
		d.Attempts = nil
		in.Devices[i] = d
	}
	return in
}
