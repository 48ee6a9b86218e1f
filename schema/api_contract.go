package schema

import "errors"

// CONTRACT: this file fixes signatures while the parts are built side by side.
// Its owner replaces it with real files and deletes it.

// Selector is a Kubernetes label selector; nil and empty match everything.
type Selector struct {
	MatchLabels      map[string]string `json:"matchLabels,omitempty"`
	MatchExpressions []Requirement     `json:"matchExpressions,omitempty"`
}

// Requirement is one expression of a [Selector].
type Requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"` // In, NotIn, Exists, DoesNotExist
	Values   []string `json:"values,omitempty"`
}

// Matches says whether the selector selects something with these labels.
func (s *Selector) Matches(labels map[string]string) bool { panic("contract") }

// EntryMode is what kind of thing a path is.
type EntryMode int

// Modes of an [Entry].
const (
	ModeRegular EntryMode = iota
	ModeExecutable
	ModeSymlink
	ModeSubmodule
)

// Entry is one path of a revision.
type Entry struct {
	Path string // slash-separated, from the root
	Mode EntryMode
	ID   string // content id (git blob hash); equal ids have equal content
	Size int64  // bytes; -1 where unknown before reading
}

// Source gives the files of one revision. Read may be called for any entry
// that Entries gave; limit is in bytes, a larger blob gives an error that
// satisfies errors.Is(err, ErrTooLarge).
type Source interface {
	Entries() ([]Entry, error) // sorted by path
	Read(e Entry, limit int64) ([]byte, error)
}

// DirSource reads a working tree, without following symlinks and without .git.
func DirSource(dir string) (Source, error) { panic("contract") }

// Loader turns revisions into fleets and remembers by content id what it has
// parsed and rendered, so that a later Load costs what changed.
type Loader struct {
	// OwnVersion is the version that an empty targetVersion means.
	OwnVersion string
}

// Load reads, checks and renders one revision. The error is for a source that
// cannot be read; wrong content is in the fleet's Problems.
func (l *Loader) Load(src Source) (*Fleet, error) { panic("contract") }

// Fleet is one revision, as far as it could be read.
type Fleet struct {
	Problems []Problem // sorted by file, line, column, rule
	Files    int       // documents read
	Policies []*Policy // sorted by name
	Devices  []*Member // sorted by path
}

// Valid says whether no problem is an error.
func (f *Fleet) Valid() bool { panic("contract") }

// Member finds a device by id; nil when there is none.
func (f *Fleet) Member(id string) *Member { panic("contract") }

// Policy finds a policy by name; nil when there is none.
func (f *Fleet) Policy(name string) *Policy { panic("contract") }

// Member is one device of a fleet with all that was worked out about it.
type Member struct {
	ID       string
	Path     string // devices/berlin/gw-berlin-01.yaml
	Device   *Device
	Policy   string // that selects it; "" = none
	Line     string // release line
	Version  string // the version it should be on: the pin, or the policy's target, or the own build; "" = there is none
	NoTarget string // why there is no target to go to; "" = there is one
	Pinned   bool
	Rollout  string    // rollout digest, "sha256:<hex>"; "" where NoTarget is set
	Rendered *Rendered // nil where NoTarget is set or the fleet is invalid for it
}

// Rendered is a desired spec as it would be assigned.
type Rendered struct {
	Spec     map[string]any     // sources replaced by payload digests, templates rendered, nulls dropped
	Digest   string             // of Spec, "sha256:<hex>"
	Payloads map[string]Payload // by "sha256:<hex>"
	Needs    []string           // capabilities that an agent must offer, sorted
}

// Payload is the content of a file that a spec names by digest: the very blob
// of the source branch (ID) or rendered bytes (Data).
type Payload struct {
	ID   string // content id in the source; "" = Data
	Data []byte
	Size int64
}

// Origin says where a value of a rendered spec was written.
type Origin struct {
	Pointer string `json:"pointer"`
	File    string `json:"file"`
	Line    int    `json:"line"`
}

// Origins gives for each leaf of the rendered spec of a device its document
// and line, sorted by pointer.
func (f *Fleet) Origins(id string) []Origin { panic("contract") }

// Digest is sha256 over the canonical JSON (RFC 8785) of a spec as assigned.
func Digest(spec map[string]any) (string, error) { panic("contract") }

// PayloadDigest is "sha256:<hex>" of the bytes.
func PayloadDigest(data []byte) string { panic("contract") }

// Decode reads one strict YAML document of the kind of v (a pointer to one of
// the kinds), checks it against its JSON Schema, and fills v. v is untouched
// when a problem is an error. The same values go to schema and decoder.
func Decode(file string, data []byte, v any) []Problem { panic("contract") }

// DecodeSpec turns the tree of an assignment into a [Spec]; unknown fields
// are an error that names them.
func DecodeSpec(tree map[string]any) (*Spec, error) { panic("contract") }

// Encode writes a document as YAML, deterministic byte for byte; times are
// UTC with seconds.
func Encode(v any) ([]byte, error) { panic("contract") }

// Needs lists the capabilities that a spec asks of an agent: "files",
// "directories", "hooks", "requires", "resources.disk", "confirm", "onDevice",
// "os", "os.<driver>" where the spec names one. Sorted.
func Needs(spec map[string]any) []string { panic("contract") }

// JSONSchema is the published JSON Schema (2020-12) of a kind.
func JSONSchema(k Kind) ([]byte, error) { panic("contract") }

// Kinds lists every kind, in the order of the documentation.
func Kinds() []Kind { panic("contract") }

// ErrTooLarge is the error of [Source.Read] for a blob over the limit.
var ErrTooLarge = errors.New("larger than the limit")
