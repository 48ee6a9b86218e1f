// Package secrets opens the secrets of a spec, which are age files, with the
// identities of the device: keys of age, or of SSH.
//
// It keeps no key, and writes and logs nothing; where a secret goes, package
// files knows. What was opened is kept by [Texts] alone, in memory, to be taken
// out of what programs say. It runs no program, so that what age calls plugins
// opens nothing here.
//
// Call [Identities.Open]. The keys are read anew each time, so that one that was
// put on the device later, or was changed, counts at once. No error repeats
// anything of a key or of a secret. Identities may be used by any number of
// goroutines.
package secrets
