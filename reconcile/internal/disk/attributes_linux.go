package disk

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// attributeTries is how often a list that grows while it is read is read again.
const attributeTries = 5

func attributesOf(f *os.File, wanted func(string) bool) (Attributes, error) {
	fd := int(f.Fd())
	names, err := grown(func(buf []byte) (int, error) { return unix.Flistxattr(fd, buf) })
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all Attributes
	size := 0
	for name := range bytes.SplitSeq(names, []byte{0}) {
		n := string(name)
		if n == "" || !wanted(n) {
			continue
		}
		value, err := grown(func(buf []byte) (int, error) { return unix.Fgetxattr(fd, n, buf) })
		if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
			continue // it went meanwhile, or is listed only
		}
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", n, err)
		}
		if size += len(n) + len(value); size > maxAttributes {
			return nil, fmt.Errorf("its extended attributes are %w of %d bytes", ErrTooLarge, maxAttributes)
		}
		if all == nil {
			all = Attributes{}
		}
		all[n] = value
	}
	return all, nil
}

// grown reads something whose size has to be asked for first.
func grown(read func([]byte) (int, error)) ([]byte, error) {
	for try := 1; ; try++ {
		n, err := read(nil)
		if err != nil || n == 0 {
			return []byte{}, err
		}
		buf := make([]byte, n)
		n, err = read(buf)
		if errors.Is(err, unix.ERANGE) && try < attributeTries {
			continue
		}
		if err != nil {
			return nil, err
		}
		return buf[:n], nil
	}
}

func setAttribute(f *os.File, name string, value []byte) error {
	return unix.Fsetxattr(int(f.Fd()), name, value, 0)
}

func removeAttribute(f *os.File, name string) error { return unix.Fremovexattr(int(f.Fd()), name) }
