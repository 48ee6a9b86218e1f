//go:build system

package protocoltest

import "testing"

// TestSystemHistories plays many more than an ordinary run does.
func TestSystemHistories(t *testing.T) { playHistories(t, 10*Histories, realHistoryEvery) }
