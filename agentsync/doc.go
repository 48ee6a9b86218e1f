// Package agentsync is the device's side of git: it reads what was assigned to
// one device, checks it, and sends the device's reports.
//
// It decides nothing about a document that can be used: whether it is for this
// installation, newer than what was done, or may begin now is package
// reconcile's, whose Control a [Control] is. It writes nothing to disk and
// knows no transport; a [Remote] does (package repo has one).
//
// Start with [New]. Where the repository is may change while the agent runs:
// a [Target] asks for its URL before each operation ([URLFile] reads it from a
// file that the device manages itself) and opens another [Remote] only when it
// differs; [Fixed] is for one that stays.
//
// An unchanged delivery ref costs one small request, and nothing is parsed
// again. Bytes from outside make problems and errors, never a panic. A
// generation that falls is a problem, as far back as this process remembers.
// Payloads are given once, with the first look at a revision, so that an idle
// agent does not hold them; [Control.Forget] makes the next look read all
// again. Every operation ends with its context or after Config.Timeout. A
// Control is safe for concurrent use, and a slow report keeps no look waiting.
package agentsync
