package simulate

import (
	"cmp"
	"container/heap"
	"time"
)

// kind is what happens.
type kind int

const (
	eventSilent    kind = iota // a device is cut off
	eventOffline               // it counts as offline
	eventGrace                 // its wave no longer waits for it
	eventAbsent                // it leaves every denominator
	eventBack                  // it is heard again
	eventIdle                  // it is no longer busy
	eventPoll                  // it looks for an assignment
	eventFinished              // its update is over, well or not
	eventSettled               // it has been on its target for long enough
	eventSoaked                // its wave, or the pilot, has waited long enough for it
	eventHeard                 // its report after that
	eventDelivered             // its assignment's recall is known to be delivered
	eventDeadline              // a limit of its attempt may be over
	eventPace                  // the policy's next upgrade may go
)

// event is something that will happen to a device.
type event struct {
	at     time.Time
	device int
	kind   kind
	// about is the attempt or the outage that it belongs to: an event of one
	// that is over means nothing.
	about int64
}

// queue is the events to come, the earliest first. Those of one moment have an
// order too: nothing depends on how they came in.
type queue []event

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q queue) Less(i, j int) bool {
	a, b := &q[i], &q[j]
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.device, b.device), cmp.Compare(a.kind, b.kind), cmp.Compare(a.about, b.about)) < 0
}

// Push and Pop are for package heap.
func (q *queue) Push(x any) { *q = append(*q, x.(event)) }

// Pop is for package heap.
func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

func (q *queue) add(e event) { heap.Push(q, e) }

// until takes the next event that happens no later than a time.
func (q *queue) until(t time.Time) (event, bool) {
	if len(*q) == 0 || (*q)[0].at.After(t) {
		return event{}, false
	}
	return heap.Pop(q).(event), true
}
