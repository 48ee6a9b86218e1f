//go:build !linux

package disk

import "os"

func openStraight(dir string) (*os.File, error) { return os.Open(dir) }

func (*Root) straight(string, bool) bool { return false }
