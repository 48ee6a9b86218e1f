// Package seal encrypts the secrets of a fleet: it makes the age files that a
// spec holds, in their text form, and the keys that open them.
//
// It opens nothing: that is the business of the agent on its device. It reads
// and writes no files.
//
// Start with [Recipients] and [Encrypt], or with [NewIdentity]. Each call gives
// another age file, also of the same content: a spec with it is another spec.
package seal
