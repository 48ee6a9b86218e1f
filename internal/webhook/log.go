package webhook

import (
	"sync"
	"time"
)

// Keys of log records.
const (
	keyBranch   = "branch"
	keyCommit   = "commit"
	keyCount    = "count"
	keyDelivery = "delivery"
	keyError    = "error"
	keyEvent    = "event"
	keyFrom     = "from"
	keyNumber   = "number"
	keyReason   = "reason"
	keyRemedy   = "remedy"
)

// sayEvery is how often the same is said of requests that anybody can send.
const sayEvery = time.Minute

// seldom counts what is said only now and then.
type seldom struct {
	mu    sync.Mutex
	said  time.Time
	since int
}

// due counts one more, and gives how many there were since it was said last if
// it is time to say it again, else 0.
func (s *seldom) due(now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since++
	if !s.said.IsZero() && now.Sub(s.said).Abs() < sayEvery {
		return 0
	}
	n := s.since
	s.said, s.since = now, 0
	return n
}
