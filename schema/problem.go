package schema

// Severity of a [Problem].
type Severity string

// An error keeps the fleet from being swept; a warning does not.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Problem is one thing that is wrong with the content of a file. Bad content
// is a result, not an error: all of it is found in one run.
type Problem struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`    // from 1; 0 where the whole file is meant
	Column   int      `json:"column"`  // from 1; 0 where the whole line is meant
	Pointer  string   `json:"pointer"` // JSON pointer (RFC 6901)
	Rule     string   `json:"rule"`    // stable name, see Rules
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"`
}
