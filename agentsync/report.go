package agentsync

import (
	"context"
	"errors"
	"fmt"

	"github.com/gitopsd/gitopsd/schema"
)

// reportFile is the name of the document inside a report's commit.
const reportFile = "report.yaml"

// maxRaces is how often a report is pushed again after somebody else has moved
// the ref: two agents under one id would otherwise push against each other
// for ever.
const maxRaces = 4

// Report sends the report; nil means that it was accepted.
func (c *Control) Report(ctx context.Context, r *schema.Report) error {
	c.reporting.Lock()
	defer c.reporting.Unlock()
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	data, err := schema.Encode(r)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	s, release, err := c.reports.acquire(ctx)
	if err != nil {
		return fmt.Errorf("report to %s: %w", c.reportRef, err)
	}
	defer release()
	if !c.tipKnown || c.tipURL != s.url {
		if err := c.readTip(ctx, s, r); err != nil {
			return fmt.Errorf("report to %s: %w", c.reportRef, err)
		}
	}
	for n := 0; ; n++ {
		commit, err := s.remote.Write(ctx, c.reportRef, c.tip, map[string][]byte{reportFile: data})
		if err == nil {
			c.tip = commit
			return nil
		}
		// Whether it arrived after all is not known: the tip is read again.
		c.tipKnown = false
		if kind(err) != "race" || n+1 >= maxRaces {
			return fmt.Errorf("report to %s: %w", c.reportRef, err)
		}
		if err := c.readTip(ctx, s, r); err != nil {
			return fmt.Errorf("report to %s: %w", c.reportRef, err)
		}
	}
}

// readTip reads where the report ref stands. Another installation's report
// there is told and written over: which of the two is the device, the daemon
// decides. So is what a power cut has left unreadable: nobody else would ever
// mend it.
func (c *Control) readTip(ctx context.Context, s *shared, r *schema.Report) error {
	commit, files, err := s.remote.Read(ctx, c.reportRef, "", c.limit)
	switch {
	case kind(err) == "corrupt":
		c.log.Warn("what stands at the report ref cannot be read and is written over", "device", c.device, "ref", c.reportRef, "cause", err)
	case err != nil:
		return err
	}
	c.tip, c.tipURL, c.tipKnown = commit, s.url, true
	var there schema.Report
	if data, ok := files[reportFile]; ok && noErrors(schema.DecodeReport(reportFile, data, &there)) {
		switch {
		case there.InstallID != r.InstallID:
			c.log.Warn("another installation reports as this device", "device", c.device, "installID", there.InstallID, "sequence", there.Sequence)
		case there.Sequence >= r.Sequence:
			c.log.Warn("a newer report of this installation is there already: is its state used twice?",
				"device", c.device, "sequence", there.Sequence, "own", r.Sequence)
		}
	}
	return nil
}

func noErrors(problems []schema.Problem) bool {
	for _, p := range problems {
		if p.Severity == schema.SeverityError {
			return false
		}
	}
	return true
}

// kind is what kind of trouble an error of a remote is.
func kind(err error) string {
	var k interface{ Kind() string }
	if errors.As(err, &k) {
		return k.Kind()
	}
	return ""
}
