// Package checks CONTRACT (replaced by its owner).
package checks

import (
	"github.com/gitopsd/gitopsd/schema"
)

// Requires checks dependencies; what is missing is one permanent failure that
// names all of it.
func Requires(root, agentVersion string, r *schema.Requires) error { panic("contract") }

// Disk checks free space: too little is retryable. need is what the update
// itself will write, in bytes.
func Disk(root string, d *schema.DiskResource, need int64) error { panic("contract") }

// Free gives the bytes free on the file system of root.
func Free(root string) int64 { panic("contract") }
