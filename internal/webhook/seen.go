package webhook

import (
	"crypto/sha256"
	"sync"
)

// maxSeen bounds what is remembered of deliveries: half a megabyte, and days of
// most repositories. Only who has the secret can push something out of it.
const maxSeen = 4096

// key stands for something that may come only once.
type key [sha256.Size]byte

func keyOf(kind string, data []byte) key {
	sum := sha256.New()
	sum.Write([]byte(kind + "\x00"))
	sum.Write(data)
	return key(sum.Sum(nil))
}

// seen remembers the last keys.
type seen struct {
	mu   sync.Mutex
	keys map[key]bool
	ring []key
	next int
}

func newSeen() *seen { return &seen{keys: map[key]bool{}} }

// add remembers all of the keys, unless one of them is known: then it gives
// false.
func (s *seen) add(keys ...key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		if s.keys[k] {
			return false
		}
	}
	for _, k := range keys {
		if len(s.ring) < maxSeen {
			s.ring = append(s.ring, k)
		} else {
			delete(s.keys, s.ring[s.next])
			s.ring[s.next] = k
			s.next = (s.next + 1) % maxSeen
		}
		s.keys[k] = true
	}
	return true
}
