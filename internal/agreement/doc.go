// Package agreement holds the tests that hold gitopsd validate against what
// others make of the same schemas: kubeconform, which people know from
// Kubernetes, and yaml-language-server, which is in most editors.
//
// It looks at what a schema can say, and at nothing else: rules about several
// files, and about what a pattern cannot tell, have no counterpart there. Which
// those are is listed by rule in the tests.
//
// Start with `make test-system`, which installs both at pinned versions; the
// tests are called TestSystem… and carry the build tag system. `make bench`
// measures validate beside kubeconform, in the same run and with the same files.
//
// Nothing here opens a connection: schemas are read from files.
package agreement
