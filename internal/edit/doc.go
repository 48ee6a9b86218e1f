// Package edit changes one value of a YAML document that a person wrote, and
// leaves every other byte as it was: comments, order, quotes, blank lines,
// line ends and a missing last one.
//
// It reads no files and knows no policy or device: what to change, and whether
// the outcome makes sense, is for the commands to say. It refuses what it could
// only rewrite: anchors, aliases, tags, several documents in one file, keys
// that are no plain words. Nothing is ever encoded anew.
//
// Start with [FormOf], then [Form.Set], [Form.Append] and [Form.Remove]; [Diff]
// shows what has changed.
//
// All are functions of their input and safe for concurrent use. An edit is read
// back before it is given: it holds exactly the values that were there, but for
// the one that was to change, or it is an error and there is no edit. What Set
// has added, Remove takes away to the byte.
package edit
