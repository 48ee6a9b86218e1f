// Package agentsync is the device's side of git: it reads what was assigned,
// checks it, and sends reports.
package agentsync
