package preview

import (
	"fmt"
	"strconv"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// more says which way a setting is more careful.
type more int

const (
	neither more = iota
	higher       // the higher value is the more careful one
	lower
)

// gates are lists of which each entry holds devices back: with one more, the
// policy is more careful. Of windows one more lets devices go, unless it is the
// first.
var gates = map[string]bool{"waves": true, "budgets": true, "freezes": true}

// ofDevices are the settings that are a number of the policy's devices, and
// whether a percentage of them is rounded up and has a least value.
var ofDevices = map[string]struct {
	up    bool
	least int
}{"maxInFlight": {least: 1}, "minAvailable": {up: true}, "failureLimit": {}, "refusalLimit": {}, "deletionLimit": {least: 2}}

// resolved is a percentage of devices as a count, so that it can be compared
// with one.
func (d *settings) resolved(field, value string) string {
	rounding, counts := ofDevices[field]
	v, err := schema.ParseIntOrPercent(value)
	if err != nil || !counts || !v.Percent || d.n == 0 {
		return value
	}
	return strconv.Itoa(max(rounding.least, count(&v, 0, d.n, rounding.up)))
}

// counted adds to a percentage how many devices that is.
func (d *settings) counted(field, value string) string {
	if n := d.resolved(field, value); n != value {
		return fmt.Sprintf("%s (%s of %d)", value, n, d.n)
	}
	return value
}

// compareCare says which of two values is the more careful one, where both
// are of one sort.
func compareCare(direction more, from, to string) string {
	if direction == neither {
		return ""
	}
	a, sortA, okA := size(from)
	b, sortB, okB := size(to)
	if !okA || !okB || sortA != sortB || a == b {
		return ""
	}
	if (a < b) == (direction == higher) {
		return "more"
	}
	return "less"
}

// size is a count, a percentage or a duration as a number, and which of them
// it is.
func size(s string) (n float64, sort string, ok bool) {
	if v, err := schema.ParseIntOrPercent(s); err == nil {
		if v.Percent {
			return float64(v.Value), "%", true
		}
		return float64(v.Value), "", true
	}
	if d, err := time.ParseDuration(s); err == nil {
		return float64(d), "time", true
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, "", err == nil
}
