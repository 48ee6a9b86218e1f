package main

import (
	"errors"
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
		return nil, nil, errors.New(cannotReadFleet + " in " + dir + ": " + err.Error())
	}
	return &schema.Loader{OwnVersion: a.build.Version, ProblemsOnly: true, Readers: runtime.GOMAXPROCS(0)}, &listedOnce{Source: src}, nil
}

// frugalGC is how much garbage there may be, in percent of what is in use: a
// check that keeps little makes some fourteen kilobytes of it for each device,
// and clearing that away more often takes a tenth of the time more and a
// quarter of the memory less.
const frugalGC = 25

// frugal clears garbage away more often than a program does which lives long,
// until what it gives is called. Who sets GOGC decides otherwise.
func (a *app) frugal() (back func()) {
	if a.env["GOGC"] != "" {
		return func() {}
	}
	before := debug.SetGCPercent(frugalGC)
	return func() { debug.SetGCPercent(before) }
}
