package schema

import "strings"

// Spec is a desired spec as an agent reads it out of an assignment: fully
// merged and rendered. Digests are never computed from it but from the tree
// as assigned ([Digest]), so a field added here moves no device.
type Spec struct {
	Requires     *Requires               `json:"requires,omitempty"`
	OS           *OS                     `json:"os,omitempty"`
	Agent        *AgentProgram           `json:"agent,omitempty"`
	Files        map[string]*File        `json:"files,omitempty"`
	Directories  map[string]*Directory   `json:"directories,omitempty"`
	Applications map[string]*Application `json:"applications,omitempty"`
	Units        map[string]*Unit        `json:"units,omitempty"`
	Resources    *Resources              `json:"resources,omitempty"`
	Hooks        *Hooks                  `json:"hooks,omitempty"`
	Confirm      *Confirm                `json:"confirm,omitempty"`
	OnDevice     *OnDevice               `json:"onDevice,omitempty"`
}

// Requires must hold before anything starts; what does not is a refusal.
type Requires struct {
	Commands        []string `json:"commands,omitempty"`        // found in PATH, or absolute
	Paths           []string `json:"paths,omitempty"`           // exist below the root
	Arch            []string `json:"arch,omitempty"`            // any of: GOARCH names
	MinAgentVersion string   `json:"minAgentVersion,omitempty"` // semantic version
	Kernel          string   `json:"kernel,omitempty"`          // at least this release, e.g. "5.10"
}

// OS is the operating system image that the device should run.
type OS struct {
	Image  string `json:"image"`            // reference or version; always a template in the fleet repository
	Driver string `json:"driver,omitempty"` // "" = the agent's own; [OSCommand], …
}

// AgentProgram is the program that the agent should be. In the fleet repository
// it has one of url, with its sha256, and source; in an assignment source has
// become payload, which is the sum itself.
type AgentProgram struct {
	Version string `json:"version"`          // that the program tells of itself
	URL     string `json:"url,omitempty"`    // always a template in the fleet repository
	SHA256  string `json:"sha256,omitempty"` // 64 hex digits
	Source  string `json:"source,omitempty"`
	Payload string `json:"payload,omitempty"` // "sha256:<hex>"
}

// Sum is the sha256 of the program in hex, "" where none is told.
func (p *AgentProgram) Sum() string {
	if p.Payload != "" {
		return strings.TrimPrefix(p.Payload, "sha256:")
	}
	return p.SHA256
}

// File is one managed file. In the fleet repository exactly one of content,
// contentBase64, source and secret is set; in an assignment source has become
// payload.
type File struct {
	Content       *string `json:"content,omitempty"`
	ContentBase64 *string `json:"contentBase64,omitempty"`
	Source        string  `json:"source,omitempty"`
	Payload       string  `json:"payload,omitempty"` // "sha256:<hex>" of the rendered bytes
	Secret        string  `json:"secret,omitempty"`  // an age file in its text form; only the device opens it
	Template      bool    `json:"template,omitempty"`
	Mode          string  `json:"mode,omitempty"` // quoted octal; "" = 0644, of a secret 0600
	Owner         string  `json:"owner,omitempty"`
	Group         string  `json:"group,omitempty"`

	// Units that restart, or read their configuration anew, when the file
	// changed, where they run.
	Restart []string `json:"restart,omitempty"`
	Reload  []string `json:"reload,omitempty"`
}

// Directory is one managed directory; mode "" = 0755.
type Directory struct {
	Mode  string `json:"mode,omitempty"`
	Owner string `json:"owner,omitempty"`
	Group string `json:"group,omitempty"`
}

// Values of [Unit.State].
const (
	UnitStarted = "started"
	UnitStopped = "stopped"
	UnitMasked  = "masked"
)

// Unit is one unit of systemd. What is not set is left as it was before the
// spec; without content, the device has the unit's file from elsewhere.
type Unit struct {
	Body
	Enabled *bool            `json:"enabled,omitempty"`
	State   string           `json:"state,omitempty"`
	DropIns map[string]*Body `json:"dropIns,omitempty"` // by the name of their file without .conf
}

// Body is what a unit's file or a drop-in holds, with the fields of [File].
type Body struct {
	Content       *string `json:"content,omitempty"`
	ContentBase64 *string `json:"contentBase64,omitempty"`
	Source        string  `json:"source,omitempty"`
	Payload       string  `json:"payload,omitempty"`
	Template      bool    `json:"template,omitempty"`
}

// IsSet says whether there is any content.
func (b *Body) IsSet() bool {
	return b.Content != nil || b.ContentBase64 != nil || b.Payload != "" || b.Source != ""
}

// Resources are checked before an update starts; monitors are watched always.
type Resources struct {
	Disk     *DiskResource       `json:"disk,omitempty"`
	Memory   *MemoryResource     `json:"memory,omitempty"`
	Monitors map[string]*Monitor `json:"monitors,omitempty"`
}

// MemoryResource wants so many bytes available to new programs.
type MemoryResource struct {
	MinAvailable string `json:"minAvailable,omitempty"` // as [DiskResource.MinFree]
}

// Values of [Monitor.Of].
const (
	MonitorDisk   = "disk"
	MonitorMemory = "memory"
	MonitorLoad   = "load" // of five minutes, 100 percent for each processor
)

// Monitor is something of which a device reports how much is in use.
type Monitor struct {
	Of       string `json:"of"`
	Path     string `json:"path,omitempty"`     // of a disk; "" = "/"
	Warning  int    `json:"warning,omitempty"`  // percent; 0 = 80
	Critical int    `json:"critical,omitempty"` // percent; 0 = 95
}

// DiskResource wants minFree bytes free on the file system of path.
type DiskResource struct {
	Path    string `json:"path,omitempty"`    // "" = "/"
	MinFree string `json:"minFree,omitempty"` // bytes, or with a suffix k, M, G, Ki, Mi, Gi
}

// Hooks are programs that run at four points of an update.
type Hooks struct {
	BeforeUpdating  map[string]*Hook `json:"beforeUpdating,omitempty"`
	AfterUpdating   map[string]*Hook `json:"afterUpdating,omitempty"`
	BeforeRebooting map[string]*Hook `json:"beforeRebooting,omitempty"`
	AfterRebooting  map[string]*Hook `json:"afterRebooting,omitempty"`
}

// Values of [Hook.OnFailure].
const (
	OnFailureFail   = "fail"
	OnFailureIgnore = "ignore"
)

// Hook is one program, run by order, then name, without a shell.
type Hook struct {
	Run       []string          `json:"run"`
	Order     int               `json:"order,omitempty"`
	Timeout   *Duration         `json:"timeout,omitempty"` // nil = 10s
	Env       map[string]string `json:"env,omitempty"`
	WorkDir   string            `json:"workDir,omitempty"`
	OnFailure string            `json:"onFailure,omitempty"` // "" = fail
	If        *HookCondition    `json:"if,omitempty"`        // nil = it runs at each update
}

// HookCondition says when a hook runs.
type HookCondition struct {
	Changed []string `json:"changed"` // one of these paths, or what lies below it
}

// Confirm says how an update proves that control is still reachable. It is
// written as a mapping, or as the word "off".
type Confirm struct {
	Off    bool      `json:"-"`
	Within *Duration `json:"within,omitempty"` // nil = 5m
	Reach  []string  `json:"reach,omitempty"`  // URLs that must answer too
}

// Values of [OnDevice.Mode].
const (
	ModeApply   = "apply"
	ModeObserve = "observe"
)

// Values of [OnDevice.Drift].
const (
	DriftRepair = "repair"
	DriftReport = "report"
)

// OnDevice steers the agent's own loop.
type OnDevice struct {
	Mode    string   `json:"mode,omitempty"`    // "" = apply
	Retries *int     `json:"retries,omitempty"` // tries beyond the first, nil = 3
	Backoff *Backoff `json:"backoff,omitempty"` // nil = 10s × 2^(n−1), at most 10m, with jitter
	Drift   string   `json:"drift,omitempty"`   // "" = repair
}

// Observes says that a device with this spec only reports what it would
// change.
func (s *Spec) Observes() bool { return s.OnDevice != nil && s.OnDevice.Mode == ModeObserve }
