// Package doctest runs what the documentation shows.
//
// It knows one convention and no markdown beyond it: a fence marked sh is
// commands to copy, a fence marked text that is the next one after it is what
// they print, and a comment before a fence may say that it ends with another
// code than 0, or why it is not run. Whether the pages are good is for a
// reader to say.
//
// Start with [Parse], then [Match].
//
// Both are deterministic and safe for concurrent use. The tests of this
// package run every page of the project.
package doctest
