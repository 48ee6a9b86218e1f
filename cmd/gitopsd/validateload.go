package main

import (
	"fmt"
	"runtime"

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
