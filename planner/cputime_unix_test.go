//go:build unix

package planner

import (
	"syscall"
	"time"
)

// cpuTime is what this process has used of all processors: it is the same on a
// machine that does other things as well.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
