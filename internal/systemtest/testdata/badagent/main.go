// Command badagent passes for a gitopsd that could be the agent, and is none.
package main

import (
	"fmt"
	"os"
	"slices"
	"time"
)

// Stamped when it is built.
var version, does string

func main() {
	switch {
	case slices.Contains(os.Args, "--version"):
		fmt.Printf("gitopsd %s go1 linux/x\n", version)
	case slices.Contains(os.Args, "--check"):
	case does == "hang":
		time.Sleep(time.Hour)
	default:
		os.Exit(1)
	}
}
