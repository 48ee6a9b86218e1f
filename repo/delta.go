package repo

// applyDelta builds an object from its base; a result over limit bytes
// (0 = any) is refused before anything is allocated for it.
func applyDelta(base, delta []byte, limit int64) ([]byte, error) {
	from, delta, ok := deltaSize(delta)
	if !ok || from != int64(len(base)) {
		return nil, corrupt("a delta for another base")
	}
	size, delta, ok := deltaSize(delta)
	if !ok {
		return nil, corrupt("a delta that ends too early")
	}
	if limit > 0 && size > limit {
		return nil, fail(kindRefused, "an object of %d bytes: %w", size, ErrTooLarge)
	}
	// The size is only the server's word: growing by use keeps a lie cheap.
	out := make([]byte, 0, min(size, 1<<20))
	for len(delta) > 0 {
		c := delta[0]
		delta = delta[1:]
		if c == 0 {
			return nil, corrupt("an unknown instruction in a delta")
		}
		if c&0x80 == 0 {
			n := int(c)
			if n > len(delta) || int64(len(out)+n) > size {
				return nil, corrupt("a delta that ends too early")
			}
			out = append(out, delta[:n]...)
			delta = delta[n:]
			continue
		}
		var off, n int64
		for i := 0; i < 7; i++ {
			if c>>i&1 == 0 {
				continue
			}
			if len(delta) == 0 {
				return nil, corrupt("a delta that ends too early")
			}
			if i < 4 {
				off |= int64(delta[0]) << (8 * i)
			} else {
				n |= int64(delta[0]) << (8 * (i - 4))
			}
			delta = delta[1:]
		}
		if n == 0 {
			n = 0x10000
		}
		if off+n > int64(len(base)) || int64(len(out))+n > size {
			return nil, corrupt("a delta that copies from outside its base")
		}
		out = append(out, base[off:off+n]...)
	}
	if int64(len(out)) != size {
		return nil, corrupt("a delta with a result of another size")
	}
	return out, nil
}

func deltaSize(b []byte) (n int64, rest []byte, ok bool) {
	for i := 0; i < len(b) && i < 8; i++ {
		n |= int64(b[i]&0x7f) << (7 * i)
		if b[i]&0x80 == 0 {
			return n, b[i+1:], true
		}
	}
	return 0, nil, false
}
