package schema

// Credentials name files, never secrets: they are read again for every
// connection, so that a rotated one is picked up.
type Credentials struct {
	Username             string `json:"username,omitempty"`             // for basic authentication and ssh; "" = "git"
	PasswordFile         string `json:"passwordFile,omitempty"`         // password or personal access token (basic)
	TokenFile            string `json:"tokenFile,omitempty"`            // bearer token
	SSHKeyFile           string `json:"sshKeyFile,omitempty"`           // "" = the ssh agent
	SSHKeyPassphraseFile string `json:"sshKeyPassphraseFile,omitempty"` //
	KnownHostsFile       string `json:"knownHostsFile,omitempty"`       // "" = ~/.ssh/known_hosts, /etc/ssh/ssh_known_hosts
	CAFile               string `json:"caFile,omitempty"`               // PEM, beside the system's
	ClientCertFile       string `json:"clientCertFile,omitempty"`
	ClientKeyFile        string `json:"clientKeyFile,omitempty"`
}

// RepoConfig says where a repository is.
type RepoConfig struct {
	URL         string       `json:"url"`
	Credentials *Credentials `json:"credentials,omitempty"`
}

// RefNames are the ref prefixes, for hosts that accept only branches.
type RefNames struct {
	Devices string `json:"devices,omitempty"` // "" = DefaultDeviceRefs
	Reports string `json:"reports,omitempty"` // "" = DefaultReportRefs
}

// Default ref prefixes; a device's id is appended.
const (
	DefaultDeviceRefs   = "refs/gitopsd/devices/"
	DefaultReportRefs   = "refs/gitopsd/reports/"
	DefaultBranch       = "main"
	DefaultStatusBranch = "gitopsd/status"
	// BrakeBranch is where a person stops things at once; it has one name in
	// every fleet, so that nobody has to look for it at night.
	BrakeBranch = "gitopsd/brake"
)

// ReportsConfig says where reports go when not to the fleet repository.
type ReportsConfig struct {
	Repo *RepoConfig `json:"repo,omitempty"`
}

// ServeConfig configures the daemon.
type ServeConfig struct {
	TypeMeta
	Spec ServeSpec `json:"spec"`
}

// ServeSpec is the content of a [ServeConfig].
type ServeSpec struct {
	Repo         RepoConfig    `json:"repo"`
	Branch       string        `json:"branch,omitempty"`
	StatusBranch string        `json:"statusBranch,omitempty"`
	Reports      ReportsConfig `json:"reports,omitzero"`
	Refs         RefNames      `json:"refs,omitzero"`
	Interval     *Duration     `json:"interval,omitempty"` // nil = 1m
	Timeout      *Duration     `json:"timeout,omitempty"`  // of one git operation; nil = 2m
	State        string        `json:"state,omitempty"`    // folder
	LogFormat    string        `json:"logFormat,omitempty"`
	LogLevel     string        `json:"logLevel,omitempty"`
	Author       Author        `json:"author,omitzero"`  // of the status commits
	Listen       string        `json:"listen,omitempty"` // host:port for webhooks; "" = nothing listens
	Webhook      WebhookConfig `json:"webhook,omitzero"`
	GitHub       GitHubConfig  `json:"github,omitzero"`
}

// WebhookConfig says who may tell the daemon to sweep.
type WebhookConfig struct {
	SecretFile string `json:"secretFile,omitempty"` // one secret a line; read for every request
	Repository string `json:"repository,omitempty"` // the fleet repository's name at the sender, owner/name; "" = as its URL says
}

// GitHubConfig says where pull requests are looked at, and the fleet's state is
// shown. Without a token and an App nothing is.
type GitHubConfig struct {
	Repository   string    `json:"repository,omitempty"` // owner/name; "" = as the URL of the fleet repository says
	APIURL       string    `json:"apiURL,omitempty"`     // "" = https://api.github.com
	TokenFile    string    `json:"tokenFile,omitempty"`  // read for each request
	App          GitHubApp `json:"app,omitzero"`
	PollInterval *Duration `json:"pollInterval,omitempty"` // of looks at all pull requests; nil = 2m, with webhooks 15m
}

// GitHubApp is an App, and where it is installed.
type GitHubApp struct {
	ID             int64  `json:"id,omitempty"`
	InstallationID int64  `json:"installationID,omitempty"` // 0 = the one that the repository is in
	PrivateKeyFile string `json:"privateKeyFile,omitempty"` // PEM, read whenever a token is needed
}

// Author signs the daemon's commits.
type Author struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
}

// AgentConfig configures the agent of one device.
type AgentConfig struct {
	TypeMeta
	Spec AgentSpec `json:"spec"`
}

// AgentSpec is the content of an [AgentConfig].
type AgentSpec struct {
	Device         string        `json:"device"`
	Repo           RepoConfig    `json:"repo,omitzero"`
	RepoFrom       string        `json:"repoFrom,omitempty"` // file below root with the repository's URL, read at each poll
	Reports        ReportsConfig `json:"reports,omitzero"`
	Refs           RefNames      `json:"refs,omitzero"`
	Root           string        `json:"root,omitempty"`      // "" = /
	Interval       *Duration     `json:"interval,omitempty"`  // of polls; nil = 1m
	Heartbeat      *Duration     `json:"heartbeat,omitempty"` // of reports; nil = 10m
	Timeout        *Duration     `json:"timeout,omitempty"`   // of one git operation; nil = 2m
	InitialVersion string        `json:"initialVersion,omitempty"`
	BusyCheck      []string      `json:"busyCheck,omitempty"` // argv; exit 0 = idle, else busy
	Secrets        SecretsConfig `json:"secrets,omitzero"`
	OS             *OSConfig     `json:"os,omitempty"`
	Boot           BootConfig    `json:"boot,omitzero"`
	Socket         SocketConfig  `json:"socket,omitzero"`
	LogFormat      string        `json:"logFormat,omitempty"`
	LogLevel       string        `json:"logLevel,omitempty"`
}

// SecretsConfig says what opens the secrets of specs.
type SecretsConfig struct {
	Identities []string `json:"identities,omitempty"` // files with private keys of age or SSH, read whenever one is needed
}

// What installs an operating system.
const (
	OSCommand = "command" // the operator's own programs
	OSTree    = "ostree"
	OSBootc   = "bootc"
)

// OSConfig says what installs the operating system. The programs are those of
// the command driver: booted and staged print a version (staged may print
// nothing), stage gets the version as its last argument, exit 0 is success.
type OSConfig struct {
	Driver string   `json:"driver,omitempty"` // "" = OSCommand
	Remote string   `json:"remote,omitempty"` // of ostree's configuration, where images come from
	OSName string   `json:"osName,omitempty"` // of ostree; "" = the booted one
	Booted []string `json:"booted,omitempty"`
	Staged []string `json:"staged,omitempty"`
	Stage  []string `json:"stage,omitempty"`
	Undo   []string `json:"undo,omitempty"`
	Reboot []string `json:"reboot,omitempty"`
	BootID string   `json:"bootID,omitempty"` // file; "" = /proc/sys/kernel/random/boot_id
}

// SocketConfig says who may speak to the agent on the device.
type SocketConfig struct {
	Group string `json:"group,omitempty"` // name or number; "" = the agent's own user alone
}

// BootConfig bounds what happens after a reboot.
type BootConfig struct {
	Timeout *Duration `json:"timeout,omitempty"` // until post-actions must have succeeded; nil = 10m
}
