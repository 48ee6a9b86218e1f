//go:build !linux

package reconcile

import "time"

// kernelUptime counts from the start of the process: systems without a boot id
// have no use for more.
func kernelUptime() func() time.Duration {
	started := time.Now()
	return func() time.Duration { return time.Since(started) }
}
