package disk

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
)

// What could not be synced is doubtful until it is done again, or synced.
func TestDoubtful(t *testing.T) {
	var bad string // the folder whose sync fails
	var synced []string
	r, _ := open(t, Options{Step: func(op, p string) error {
		if op == "syncdir" && p == bad {
			return syscall.EIO
		}
		if op == "sync" || op == "syncdir" {
			synced = append(synced, p)
		}
		return nil
	}})
	doubtful := func(want bool, paths ...string) {
		t.Helper()
		for _, p := range paths {
			if r.Doubtful(p) != want {
				t.Errorf("%s is doubtful: %t", p, !want)
			}
		}
	}
	fails := func(err error) {
		t.Helper()
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("got %v, want %v", err, syscall.EIO)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	bad = "/"
	fails(r.WriteFile("/f", []byte("1"), own))
	fails(r.Remove("/f"))
	_, err := r.MkdirAll("/d", own)
	fails(err)
	doubtful(true, "/f", "/d")
	fails(r.Sync("/f"))
	fails(r.WriteFile("/d/x", []byte("1"), own)) // it would go with its folder
	doubtful(true, "/f", "/d", "/d/x")
	bad = ""
	must(r.Sync("/f"))
	synced = nil
	must(r.WriteFile("/d/x", []byte("1"), own))
	if !slices.Contains(synced, "/") {
		t.Errorf("the folder of a new file was not made to last: %v", synced)
	}
	doubtful(false, "/f", "/d", "/d/x", "/d/y")

	bad = "/d"
	fails(r.WriteFile("/d/x", []byte("2"), own))
	fails(r.Rename("/d/x", "/d/y"))
	bad = ""
	must(r.WriteFile("/d/x", []byte("3"), own))
	doubtful(false, "/d/x")
	doubtful(true, "/d/y")
	must(r.Remove("/d/y"))
	must(r.Remove("/d/x"))
	bad = "/"
	fails(r.Remove("/d"))
	bad = ""
	must(r.Sync("/d/x")) // gone with its folder
	must(r.Sync("/d"))
	doubtful(false, "/d", "/d/x", "/d/y")
}

func TestReadState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r, _ := open(t, Options{ReadStep: func(op, _ string) error {
			if n++; op == "read" && n == 1 {
				return syscall.EIO
			}
			return nil
		}})
		if err := r.WriteFile("/f", []byte("1"), own); err != nil {
			t.Fatal(err)
		}
		if data, err := r.ReadState("/f", 0); err != nil || string(data) != "1" || n != 2 {
			t.Errorf("%q, %v after %d reads", data, err, n)
		}
	})
}
