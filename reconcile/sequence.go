package reconcile

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

// sequenceBlock is how many numbers one write reserves: at a report every ten
// minutes an idle device writes once a week.
const sequenceBlock = 1000

// install is install.json: who this installation is, and up to where numbers
// of reports may have been used.
type install struct {
	ID       string `json:"id"`
	Reserved int64  `json:"reserved"`
}

// maxInstallID is the length in bytes that a report may carry.
const maxInstallID = 100

// valid leaves room for the numbers of a lifetime.
func (i *install) valid() bool {
	return i.ID != "" && len(i.ID) <= maxInstallID && sane(i.Reserved) && i.Reserved <= maxNumber/2
}

// newInstallID is 128 random bits in hex.
func newInstallID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	return hex.EncodeToString(b[:])
}

// sequence numbers the reports of an installation. A number is on disk as
// reserved before it is used, so none is used twice, also after a crash. It
// is safe for concurrent use: reports go out beside the work.
type sequence struct {
	mu   sync.Mutex
	root *disk.Root
	ins  install
	next int64
}

func (q *sequence) set(i install) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ins = i
	q.next = i.Reserved + 1
}

// begin makes i the installation, on disk first: a report that goes out
// meanwhile must not write the former one over it.
func (q *sequence) begin(i install) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.write(i); err != nil {
		return &stateError{err}
	}
	q.ins = i
	q.next = i.Reserved + 1
	return nil
}

func (q *sequence) write(i install) error {
	b, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("encode %s: %w", installFile, err)
	}
	return writeState(q.root, installFile, append(b, '\n'))
}

func (q *sequence) id() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ins.ID
}

// take gives the installation and its next number.
func (q *sequence) take() (string, int64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	// half a block early, so that a full disk does not silence a running agent at once
	if q.ins.Reserved-q.next < sequenceBlock/2 {
		i := install{ID: q.ins.ID, Reserved: q.next - 1 + sequenceBlock}
		if err := q.write(i); err == nil {
			q.ins = i
		} else if q.next > q.ins.Reserved {
			return "", 0, fmt.Errorf("reserve numbers for reports: %w", err)
		}
	}
	n := q.next
	q.next++
	return q.ins.ID, n, nil
}
