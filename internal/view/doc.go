// Package view turns what stands on the status branch into what a person
// wants to see: the fleet at a glance, and why one device is where it is.
//
// It reads no repository and decides nothing: the verdicts are the planner's,
// the documents come in as values, and whoever calls it prints the result.
//
// Call [NewFleet] or [Explain] with the documents, then write the value as
// JSON or give it to [WriteFleet] or [WriteExplanation].
//
// Everything here is pure and deterministic; lists in the documents are never
// nil; all text that is written went through [Clean].
package view
