package github

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

const (
	// DefaultInterval is between two looks at the open pull requests where
	// nobody hands events in. A list that has not changed costs nothing of the
	// rate limit.
	DefaultInterval = 2 * time.Minute
	// DefaultSafetyInterval is between two looks where events come: deliveries
	// get lost.
	DefaultSafetyInterval = 15 * time.Minute
)

// Config says what is shown where. Repository, Branch, Look and either a token
// or an App are needed.
type Config struct {
	URL        string // of the API; "" = DefaultURL
	Repository string // owner/name
	Branch     string // pull requests to other branches are left alone

	TokenFile      string // with one token, or
	AppID          int64  // an App with
	InstallationID int64  // 0 = the one that Repository is in
	PrivateKeyFile string // in PEM

	// Look looks at a pull request. An error with a method Kind() that gives
	// "not-found" or "race" says that its commits are not to be had, maybe not
	// yet. It is called by one goroutine, and must end when ctx does: then
	// there is something newer to look at.
	Look func(ctx context.Context, p Pull) (Review, error)

	Interval  time.Duration     // between looks at all pull requests; 0 = DefaultInterval
	StatusURL string            // where people see more of the fleet; "" = nowhere
	Transport http.RoundTripper // to the API; nil = the standard library's
	Logger    *slog.Logger      // nil = silent
}

// Review is what a look at one pull request came to.
type Review struct {
	Head string // the commit that was looked at
	Base string // the commit of the branch that it was compared with
	// Validate and Plan are shown as commit statuses; a Plan without a state is
	// not shown.
	Validate, Plan Verdict
	Problems       []schema.Problem
	// Comment is the text of the one comment, whose first line is a mark of
	// package comment; "" = none can be written now, and it is looked at again
	// with the next look at all pull requests.
	Comment string
}

// Verdict is a state and a few words.
type Verdict struct {
	State State
	Words string
}

// Event is what a webhook tells of a pull request. Nothing in it is believed
// but the number: what is there now is asked for.
type Event struct {
	Number int
	Action string // opened, synchronize, reopened, edited, closed, …
	Head   string // its commit; "" = it is not known
}

// FleetState is what a sweep came to, for the commit that it was of.
type FleetState struct {
	Commit string
	State  State
	Words  string
}

// Service shows on GitHub what it is handed. See [New].
type Service struct {
	cfg    Config
	forge  forge
	client *client
	log    *slog.Logger
	queue  *queue
	fleet  fleetShown
	said   said
	off    map[feature]time.Time // what may not be done is tried again then
	known  map[int]known         // open pull requests that were looked at; of Run alone
}

// known is what stands at a pull request.
type known struct {
	head  string
	base  string // "" = no comment says one
	stale bool
}

// New checks the configuration. Nothing is asked yet, and no secret is read.
func New(cfg Config) (*Service, error) {
	if cfg.Look == nil || cfg.Branch == "" {
		return nil, errors.New("github: neither a branch nor a look at its pull requests is given")
	}
	if cfg.Interval <= 0 {
		cfg.Interval = DefaultInterval
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.StatusURL == "" {
		cfg.StatusURL = webURL(c.api, c.owner, c.name)
	}
	s := newService(cfg, c)
	s.client = c
	return s, nil
}

func newService(cfg Config, f forge) *Service {
	return &Service{
		cfg: cfg, forge: f, log: cfg.Logger, queue: newQueue(),
		said: said{}, off: map[feature]time.Time{}, known: map[int]known{},
	}
}
