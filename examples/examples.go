// Package examples holds a fleet repository to read and to copy. It is
// compiled into gitopsd, because the demonstration starts from it.
//
// It has no code beyond handing out the files; package schema reads them.
//
// Start with [FleetRepo].
//
// Its tests validate, render and plan every version of the example, so what
// a reader copies works.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed all:fleet-repo
var embedded embed.FS

// FleetRepo is the example as it would lie at the root of a repository. File
// modes are not kept; no file of it needs to be executable.
func FleetRepo() fs.FS {
	sub, err := fs.Sub(embedded, "fleet-repo")
	if err != nil {
		panic(err) // the name is a constant, embedded above
	}
	return sub
}
