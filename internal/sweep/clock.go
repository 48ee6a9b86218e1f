package sweep

import (
	"fmt"
	"time"
)

const (
	// clockParting is how far wall time and time since boot may part between
	// two passes; time synchronisation moves a healthy clock by far less.
	clockParting = 10 * time.Minute

	// clockBehind is how far now may lie before the newest recorded time;
	// several daemons' clocks differ by less.
	clockBehind = time.Hour
)

// clockState anchors the wall clock to the time since boot.
type clockState struct {
	Wall   time.Time     `json:"wall"`
	Uptime time.Duration `json:"uptime,omitempty"`
	Boot   string        `json:"boot,omitempty"`
	// Accepted is the newest recorded time when a person accepted the clock:
	// times up to it no longer say that the clock is behind.
	Accepted time.Time `json:"accepted,omitzero"`
}

// reading is the clock at the start of a pass.
type reading struct {
	wall   time.Time
	uptime time.Duration
	boot   string // "" = the time since boot is not known
}

func (d *Daemon) readClock() reading {
	r := reading{wall: stamp(d.cfg.Now())}
	up, boot, err := d.cfg.Uptime()
	if err != nil {
		if d.news("uptime", err.Error()) {
			d.log.Warn("the clock is guarded by recorded times only", keyError, err.Error())
		}
		return r
	}
	r.uptime, r.boot = up, boot
	return r
}

// judge compares a reading with the anchor and the newest recorded time. why
// is "" when the clock can be trusted; trusted is the time to record with
// meanwhile.
func (c clockState) judge(r reading, newest time.Time) (why string, trusted time.Time) {
	if !c.Wall.IsZero() && c.Boot != "" && c.Boot == r.boot {
		expected := c.Wall.Add(r.uptime - c.Uptime)
		if by := r.wall.Sub(expected); by.Abs() >= clockParting {
			return fmt.Sprintf("the wall clock says %s, by the time since boot it should be %s", text(r.wall), text(expected)), stamp(expected)
		}
	}
	if newest.After(c.Accepted) && newest.Sub(r.wall) > clockBehind {
		return fmt.Sprintf("the clock says %s, but %s is already on record", text(r.wall), text(newest)), newest
	}
	return "", r.wall
}

// anchor takes the reading as right.
func (c *clockState) anchor(r reading) {
	c.Wall, c.Uptime, c.Boot = r.wall, r.uptime, r.boot
}

// Years, in UTC: no clock that was ever set shows one before firstClock,
// because this program is younger; documents hold those from firstYear on.
const firstYear, firstClock, lastYear = 1970, 2020, 9999

// wasSet says whether a time can be of a clock that was ever set.
func wasSet(t time.Time) bool { return isWritable(t) && t.UTC().Year() >= firstClock }

func isWritable(t time.Time) bool {
	year := t.UTC().Year()
	return year >= firstYear && year <= lastYear
}

// stamp is a time as it stands in documents: UTC, whole seconds, so that a
// document that was written and read again is equal.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func text(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
