package checks

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// memInfo is the kernel's word on the memory of the machine, whatever the root.
const memInfo = "/proc/meminfo"

// Memory checks that programs could be started in so much memory without
// pushing others out of it: too little is retryable.
func Memory(m *schema.MemoryResource) error {
	if m == nil || m.MinAvailable == "" {
		return nil
	}
	least, err := schema.ParseQuantity(m.MinAvailable)
	if err != nil {
		return failure.Permanent("resources", "memory", "minAvailable: %w", err)
	}
	_, available, err := memory(memInfo)
	if err != nil {
		return failure.Retryable("resources", "memory", "%w", err)
	}
	if available < least {
		return failure.Retryable("resources", "memory", "%d bytes are available, %d are wanted by the spec", available, least)
	}
	return nil
}

// memory gives all the memory and what of it is available, in bytes.
func memory(file string) (total, available int64, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, err
	}
	total, available = -1, -1
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 44)
		if err != nil || n < 0 {
			continue
		}
		switch name {
		case "MemTotal":
			total = n << 10
		case "MemAvailable":
			available = n << 10
		}
	}
	if total <= 0 || available < 0 {
		return 0, 0, fmt.Errorf("%s: %w", file, errNoMemory)
	}
	return total, available, nil
}

var errNoMemory = errors.New("it does not say how much memory is available, as kernels do since 3.14")
