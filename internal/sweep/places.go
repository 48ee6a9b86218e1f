package sweep

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// place is one ref, or all refs that begin with a prefix.
type place struct {
	what   string
	name   string
	prefix bool
}

func (p place) String() string { return fmt.Sprintf("%s %s", p.what, oneLine(p.name)) }

// apart says why two places cannot be used beside each other; "" = they can.
// A ref that lies below another one as a file below a file cannot exist in git,
// and what lies below a prefix would be taken for what is kept there.
func (p place) apart(q place) string {
	inside := func(a, b place) bool {
		return a.name == b.name || strings.HasPrefix(a.name, b.name) && b.prefix || strings.HasPrefix(a.name, strings.TrimSuffix(b.name, "/")+"/")
	}
	if inside(p, q) || inside(q, p) {
		return fmt.Sprintf("%s and %s cannot be told apart; choose names of which neither begins with the other", p, q)
	}
	return ""
}

// checkPlaces refuses names under which one thing would be taken for another,
// such as a delivery for the source branch. branch is the source; "" = not
// known yet.
func (c *Config) checkPlaces(branch string) error {
	status := place{what: "the status branch", name: branchRef(c.StatusBranch)}
	devices := place{what: "the deliveries", name: c.DeviceRefs, prefix: true}
	reports := place{what: "the reports", name: c.ReportRefs, prefix: true}
	all := []place{status, devices, {what: "the brake branch", name: branchRef(schema.BrakeBranch)}}
	if branch != "" {
		all = append(all, place{what: "the source branch", name: branchRef(branch)})
	}
	if c.Reports == nil || c.Reports == c.Remote {
		all = append(all, reports)
	}
	for _, p := range []place{devices, reports} {
		if !strings.HasPrefix(p.name, "refs/") || !strings.HasSuffix(p.name, "/") || len(p.name) <= len("refs//") {
			return fmt.Errorf("%s: a prefix of refs begins with refs/ and ends with /", p)
		}
	}
	for i, p := range all {
		for _, q := range all[:i] {
			if why := p.apart(q); why != "" {
				return errors.New(why)
			}
		}
	}
	return nil
}
