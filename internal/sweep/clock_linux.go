package sweep

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const bootIDFile = "/proc/sys/kernel/random/boot_id"

// kernelUptime reads CLOCK_BOOTTIME, which no change of the wall clock moves
// and which runs on while the machine is suspended.
func kernelUptime() (time.Duration, string, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, "", fmt.Errorf("read CLOCK_BOOTTIME: %w", err)
	}
	id, err := os.ReadFile(bootIDFile)
	if err != nil {
		return 0, "", fmt.Errorf("read the boot id: %w", err)
	}
	return time.Duration(ts.Nano()), strings.TrimSpace(string(id)), nil
}
