//go:build system

package apps

import "testing"

func TestSystemKilledAnywhere(t *testing.T) { killedAt(t, 1) }
