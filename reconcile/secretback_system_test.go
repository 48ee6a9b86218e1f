//go:build system

package reconcile

import "testing"

// Power goes at every operation of an update that drops a secret and fails on a
// device that has lost its key.
func TestSystemSecretCrashDropped(t *testing.T) { crashDropped(t, true) }
