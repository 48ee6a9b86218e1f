package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/gitopsd/gitopsd/schema"
)

// problemsOf gives what loads the fleet in a folder for its problems alone.
// Where the same loader will have loaded another revision before, it takes
// content ids, and keeps what it knows of each.
func (a *app) problemsOf(dir string, compared bool) (*schema.Loader, *listedOnce, error) {
	src, err := dirSource(dir)
	if err != nil {
		return nil, nil, err
	}
	if compared {
		return &schema.Loader{OwnVersion: a.build.Version}, &listedOnce{Source: src}, nil
	}
	if src, err = schema.DirNames(dir); err != nil {
		return nil, nil, fmt.Errorf("%s in %s: %w", cannotReadFleet, dir, err)
	}
	return &schema.Loader{OwnVersion: a.build.Version, ProblemsOnly: true, Readers: runtime.GOMAXPROCS(0)}, &listedOnce{Source: src}, nil
}

// frugalPercent is how much garbage may come up beside what is kept, in percent
// of it, before it is collected. Of a device that was looked at next to nothing
// is kept, and little garbage is made: with Go's own 100 the process would have
// a fifth more memory, and take a fifth less of the processors' time.
const frugalPercent = 25

// frugally keeps the memory of this process small until restore is called. Who
// has set GOGC has decided.
func (a *app) frugally() (restore func()) {
	if a.env["GOGC"] != "" {
		return func() {}
	}
	before := debug.SetGCPercent(frugalPercent)
	return func() { debug.SetGCPercent(before) }
}
