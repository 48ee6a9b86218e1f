package reconcile

import (
	"errors"
	"syscall"
	"time"
)

// reminder is how often a log is told of what goes on: often enough for who
// looks at the end of it, and nothing beside the polls of an hour.
const reminder = time.Hour

// ongoing is something that goes on for a while: a log has its beginning, its
// end, and a reminder now and then, and not each time that it is met.
type ongoing struct {
	what  string // "" = it does not go on
	since time.Duration
	told  time.Duration
}

// tell says whether it is to be told now, at this uptime: it has begun, has
// become something else, or it is time for a reminder.
func (o *ongoing) tell(what string, now time.Duration) bool {
	switch {
	case o.what == "":
		o.since = now
	case o.what == what && now < o.told+reminder:
		return false
	}
	o.what, o.told = what, now
	return true
}

// over ends it; was says that it went on, for as long as lasted says.
func (o *ongoing) over(now time.Duration) (lasted time.Duration, was bool) {
	lasted, was = (now - o.since).Round(time.Second), o.what != ""
	*o = ongoing{}
	return lasted, was
}

// kindOf tells one trouble from another where its words name another file each
// time.
func kindOf(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return "trouble"
}
