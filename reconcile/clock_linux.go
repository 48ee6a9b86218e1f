package reconcile

import (
	"time"

	"golang.org/x/sys/unix"
)

// kernelUptime reads CLOCK_BOOTTIME, which goes on while the device sleeps.
func kernelUptime() func() time.Duration {
	started := time.Now()
	return func() time.Duration {
		var ts unix.Timespec
		if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil { // a kernel before 2.6.39, or a sandbox
			return time.Since(started)
		}
		return time.Duration(ts.Nano())
	}
}
