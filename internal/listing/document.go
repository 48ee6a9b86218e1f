package listing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"

	"github.com/gitopsd/gitopsd/schema"
)

// document is the JSON of gitopsd validate.
type document struct {
	schema.TypeMeta
	Problems []schema.Problem `json:"problems"`
	Files    int              `json:"files"`
	Valid    bool             `json:"valid"`
	Since    *Since           `json:"changedSince,omitempty"`
}

// WriteJSON writes a document of the kind ValidationReport.
func WriteJSON(w io.Writer, r *Result) error {
	doc := document{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "ValidationReport"},
		Problems: r.Problems, Files: r.Files, Valid: r.Valid, Since: r.Since,
	}
	if doc.Problems == nil {
		doc.Problems = []schema.Problem{} // lists are never null
	}
	return encode(w, doc)
}

// encode writes JSON that a terminal may get: the package for JSON escapes only
// one of the two sets of control characters.
func encode(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	data := b.Bytes()
	if bytes.ContainsFunc(data, otherControl) {
		data = otherControls.ReplaceAllFunc(data, func(r []byte) []byte { return fmt.Appendf(nil, "\\u%04x", []rune(string(r))[0]) })
	}
	_, err := w.Write(data)
	return err
}

var otherControls = regexp.MustCompile("[\u007f-\u009f]")

func otherControl(r rune) bool { return r >= 0x7f && r <= 0x9f }
