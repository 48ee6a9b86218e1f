package schema

import "reflect"

// documentChecks are the checks of one document that a schema cannot say.
func documentChecks(doc *document, dst reflect.Value) []Problem { return nil }
