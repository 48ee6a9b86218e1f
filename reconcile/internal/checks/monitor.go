package checks

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/schema"
)

// loadAverage is how many processes wanted to run lately.
const loadAverage = "/proc/loadavg"

// Used says how much of something is in use, in percent, rounded up. The load is
// that of the last five minutes, 100 for each processor.
func Used(root *disk.Root, m *schema.Monitor) (percent int, err error) {
	switch m.Of {
	case schema.MonitorDisk:
		p := m.Path
		if p == "" {
			p = "/"
		}
		st, err := statfs(root, p)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", p, err)
		}
		// As df reckons: what only root may fill is neither used nor free.
		used := float64(st.Blocks - min(st.Bfree, st.Blocks))
		return share(used, used+float64(st.Bavail)), nil
	case schema.MonitorMemory:
		total, available, err := memory(memInfo)
		if err != nil {
			return 0, err
		}
		return share(float64(total-min(available, total)), float64(total)), nil
	case schema.MonitorLoad:
		return load(loadAverage, runtime.NumCPU())
	}
	return 0, fmt.Errorf("nothing is known of %q", m.Of)
}

func load(file string, processors int) (int, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0, fmt.Errorf("%s: it has no load of five minutes", file)
	}
	n, err := strconv.ParseFloat(fields[1], 64)
	if err != nil || !(n >= 0) { // NaN is none either
		return 0, fmt.Errorf("%s: %q is no load", file, fields[1])
	}
	return share(n, float64(processors)), nil
}

// mostShare bounds what is said of a load.
const mostShare = 100_000

func share(part, whole float64) int {
	if whole <= 0 {
		return 0
	}
	return int(min(math.Ceil(100*part/whole), mostShare))
}
