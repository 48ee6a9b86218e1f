package reconcile

import (
	"fmt"
	"regexp"
)

// Where the agent's programs lie: each in a folder named after its sum, under
// the name by which people look for it among the processes.
const (
	programsFile = stateDir + "/agent.json"
	programsDir  = stateDir + "/agent"
	programName  = "gitopsd"
)

// programs says which program is the agent: agent.json. Where it says nothing,
// that is the one of the device's package, which no release ever writes. Agents
// of all versions read it, the one of the package first of all.
type programs struct {
	Kept  *kept  `json:"kept,omitempty"` // nil = that of the package
	Trial *trial `json:"trial,omitempty"`
}

// kept is a program that has proved itself.
type kept struct {
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

// trial is the program that an attempt is to go on with.
type trial struct {
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256,omitempty"` // "" = that of the package
	Attempt int64  `json:"attempt"`
	Starts  int    `json:"starts,omitempty"`
	GaveUp  string `json:"gaveUp,omitempty"` // why it is not started any more
}

// maxStarts is how often a program on trial may be started before it has
// proved itself. A power cut is one of them.
const maxStarts = 3

var sumForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (p *programs) valid() bool {
	if k := p.Kept; k != nil && !sumForm.MatchString(k.SHA256) {
		return false
	}
	t := p.Trial
	return t == nil || ((t.SHA256 == "" || sumForm.MatchString(t.SHA256)) && sane(t.Attempt) && t.Starts >= 0)
}

// next is the sum of what should run; "" = the program of the package.
func (p *programs) next() string {
	switch {
	case p.Trial != nil && p.Trial.GaveUp == "":
		return p.Trial.SHA256
	case p.Kept != nil:
		return p.Kept.SHA256
	}
	return ""
}

func programFolder(sum string) string { return programsDir + "/" + sum }
func programPath(sum string) string   { return programFolder(sum) + "/" + programName }

// versionOf is the version of a program, as people read it.
func versionOf(version string) string {
	if version == "" {
		return "the one of the package"
	}
	return version
}

// text is a trial in words.
func (t *trial) text() string {
	if t.GaveUp != "" {
		return versionOf(t.Version) + ": " + t.GaveUp
	}
	return fmt.Sprintf("%s, start %d of %d", versionOf(t.Version), t.Starts, maxStarts)
}

func (s *store) savePrograms(p programs) error {
	var err error
	if p == (programs{}) {
		err = s.remove(programsFile)
	} else {
		err = s.write(programsFile, p)
	}
	if err == nil {
		s.programs = p
	}
	return err
}
