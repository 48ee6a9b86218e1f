// Package repo is git as gitopsd needs it: bytes, paths and revisions.
package repo
