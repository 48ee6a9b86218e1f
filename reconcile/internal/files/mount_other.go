//go:build !linux

package files

// mountedReadOnly is false where no device runs: authors of fleets build
// gitopsd for their own machines too.
func mountedReadOnly(string) bool { return false }
