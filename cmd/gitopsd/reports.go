package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// reportLimit bounds a report in bytes: it holds a few messages of at most
// 8 KiB and a list of paths.
const reportLimit = 1 << 20

func (r *reader) reportRefs() string { return or(r.spec.Refs.Reports, schema.DefaultReportRefs) }

// readReports reads what devices said last, by id, from the refs with this
// prefix. A report that cannot be understood is left out, as a sweep does.
func (r *reader) readReports(ctx context.Context, prefix string) (map[string]*schema.Report, error) {
	var tips map[string]map[string][]byte
	refs, err := r.reports.Refs(ctx, prefix)
	if err == nil {
		tips, err = r.reports.Tips(ctx, refs, reportLimit)
	}
	if err != nil {
		where, _ := reportsOf(r.spec.Repo, r.spec.Reports)
		return nil, repoHint(fmt.Errorf("cannot read the reports: %w", err), where.URL)
	}
	reports := map[string]*schema.Report{}
	for ref, files := range tips {
		report := &schema.Report{}
		wrong, _ := tally(schema.DecodeReport("report.yaml", files["report.yaml"], report))
		id := strings.TrimPrefix(ref, r.reportRefs())
		if wrong == 0 && report.Metadata.Name == id {
			reports[id] = report
		}
	}
	return reports, nil
}
