//go:build !linux

package disk

import (
	"errors"
	"os"
)

// Only on Linux are there attributes that an agent has to keep.
func attributesOf(*os.File, func(string) bool) (Attributes, error) { return nil, nil }

func setAttribute(*os.File, string, []byte) error { return errors.ErrUnsupported }

func removeAttribute(*os.File, string) error { return errors.ErrUnsupported }
