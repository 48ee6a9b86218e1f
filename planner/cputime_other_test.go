//go:build !unix

package planner

import "time"

var started = time.Now()

// cpuTime is the time that passed, where nobody tells what a process used.
func cpuTime() time.Duration { return time.Since(started) }
