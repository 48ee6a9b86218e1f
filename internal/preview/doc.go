// Package preview says what a change of a fleet repository would do: to the
// content of which devices, to the policies, to who moves next, and how far a
// bad release would get.
//
// It reads no repository and no clock, decides nothing and prints nothing: the
// fleets were loaded and planned by whoever calls it, and package view, or
// another renderer, writes what comes out.
//
// Call [Compare] for a whole change, or [Look] for one device of it.
//
// Both are pure and deterministic as far as the functions are that read
// payloads. Their cost follows what differs between the two revisions. Lists
// are never nil. Values that look like secrets are not in the model, so no
// renderer can print them; what is there may hold any character, and a
// renderer has to see to that.
package preview
