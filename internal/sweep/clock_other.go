//go:build !linux

package sweep

import (
	"errors"
	"time"
)

// kernelUptime is unknown here; only the newest recorded time guards the clock.
func kernelUptime() (time.Duration, string, error) {
	return 0, "", errors.New("no clock that runs since boot is known on this system")
}
