package repo_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

// TestDeviceKeepsNothing: an agent reads one delivery after the other for
// months and must stay small; what it has read it does not need again.
func TestDeviceKeepsNothing(t *testing.T) {
	everyWay(t, func(t *testing.T, p place) {
		ctx := context.Background()
		d := openDevice(t, p)
		const deliveries, size = 25, 400 << 10
		random := rand.New(rand.NewPCG(1, 2))
		read := func(i int, old string) string {
			t.Helper()
			payload := make([]byte, size)
			for j := range payload {
				payload[j] = byte(random.Uint32())
			}
			ref := "refs/gitopsd/devices/d1"
			id, err := d.Write(ctx, ref, old, map[string][]byte{"payload": payload, "assignment.yaml": fmt.Append(nil, i)})
			if err != nil {
				t.Fatal(err)
			}
			commit, files, err := d.Read(ctx, ref, old, 1<<20)
			if err != nil || commit != id || !bytes.Equal(files["payload"], payload) {
				t.Fatalf("delivery %d reads as %s with %d files, %v", i, commit, len(files), err)
			}
			return id
		}
		tip := read(0, "")
		before := heap()
		for i := range deliveries {
			tip = read(i+1, tip)
		}
		// Together they are 10 MB.
		if after := heap(); after > before+4<<20 {
			t.Errorf("after %d deliveries of %d bytes %d bytes are in use, %d before", deliveries, size, after, before)
		}
	})
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
