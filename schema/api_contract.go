package schema

// CONTRACT: this file fixes signatures while the parts are built side by side.
// Its owner replaces it with real files and deletes it.

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
