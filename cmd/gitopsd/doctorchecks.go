package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/github"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/internal/webhook"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// doctor collects what it finds.
type doctor struct {
	app    *app
	spec   schema.ServeSpec
	reader *reader
	rows   []checkRow
}

func (d *doctor) ok(name, format string, args ...any) {
	d.rows = append(d.rows, checkRow{Name: name, Result: resultOK, Detail: clean(redactText(fmt.Sprintf(format, args...)))})
}

func (d *doctor) skipped(name, why string) {
	d.rows = append(d.rows, checkRow{Name: name, Result: resultSkipped, Detail: clean(why)})
}

// failed takes the remedy from the hints of the error, where it has some.
func (d *doctor) failed(name string, err error, remedy string) {
	text, list := err.Error(), hints(err)
	var at *repo.Error
	if errors.As(err, &at) && at.Hint != "" {
		text = strings.ReplaceAll(text, " ("+at.Hint+")", "")
		list = append(list, at.Hint)
	}
	var file *fs.PathError
	switch {
	case errors.As(err, &file) && errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(file.Path, systemdCredentials):
		remedy = "a service has its credentials only while it runs: systemd-run gives them to gitopsd doctor too, as docs/howto/check-the-setup.md shows"
	case len(list) > 0:
		remedy = list[0]
	}
	d.wrong(name, text, remedy)
}

// systemdCredentials is where systemd puts the credentials of services.
const systemdCredentials = "/run/credentials/"

func (d *doctor) wrong(name, detail, remedy string) {
	d.rows = append(d.rows, checkRow{Name: name, Result: resultFailed, Detail: clean(redactText(detail)), Remedy: clean(redactText(remedy))})
}

// all tries everything in the order in which it is needed.
func (d *doctor) all(cmd *cobra.Command, options *serveOptions) {
	ctx := cmd.Context()
	if !d.configuration(cmd, options) {
		return
	}
	d.stateFolder()
	d.secretFiles()
	d.webhookSecret()
	if d.repository(ctx) {
		d.fleet(ctx)
		d.reports(ctx)
		d.refs(ctx)
		if err := d.reader.close(); err != nil {
			d.failed("temporary copy", err, "remove it by hand")
		}
	}
	d.github(ctx)
}

func (d *doctor) configuration(cmd *cobra.Command, options *serveOptions) bool {
	const name = "configuration"
	spec, _, file, err := options.resolve(cmd, d.app.env)
	if err == nil {
		err = checkServe(spec)
	}
	if err != nil {
		d.failed(name, err, "gitopsd config show serve prints what holds, and where it comes from")
		return false
	}
	d.spec = spec
	d.ok(name, "%s", or(file, "no file; flags and environment"))
	return true
}

// stateFolder tries to write where the daemon will; what was not there before
// is removed again.
func (d *doctor) stateFolder() {
	const name = "state folder"
	const remedy = "let the daemon's user write there, or name another folder with --state"
	base, err := stateBase(d.spec.State, d.app.env)
	if err != nil {
		d.failed(name, err, remedy)
		return
	}
	at := base
	for !isFolder(at) && at != path.Dir(at) {
		at = path.Dir(at) // the daemon makes the rest
	}
	probe, err := os.MkdirTemp(at, ".gitopsd-doctor-")
	if err == nil {
		err = os.Remove(probe)
	}
	if err != nil {
		d.failed(name, err, remedy)
		return
	}
	d.ok(name, "%s", base)
}

// secretFiles looks at who can read them.
func (d *doctor) secretFiles() {
	const name = "secret files"
	files := serveSecrets(d.spec)
	if !slices.ContainsFunc(files, func(f string) bool { return f != "" }) {
		d.skipped(name, "none is configured")
		return
	}
	if list := readByAll(files); len(list) > 0 {
		d.wrong(name, forAllToRead+": "+strings.Join(list, ", "), makePrivate)
		return
	}
	d.ok(name, "none can be read by every user of this machine")
}

func (d *doctor) webhookSecret() {
	const name = "webhook secret"
	if d.spec.Listen == "" {
		d.skipped(name, "nothing listens")
		return
	}
	if _, err := webhook.ReadSecrets(d.spec.Webhook.SecretFile); err != nil {
		d.failed(name, err, "put one secret, or two while it is being changed, each in a line, into the file that webhook.secretFile names, readable for the daemon's user")
		return
	}
	d.ok(name, "%s", d.spec.Webhook.SecretFile)
}

func (d *doctor) repository(ctx context.Context) bool {
	const name = "fleet repository"
	r, err := openReader(d.spec)
	if err != nil {
		d.failed(name, err, "check repo.url")
		return false
	}
	d.reader = r
	refs, err := r.fleet.Refs(ctx, branchPrefix+r.branch())
	if err != nil {
		d.failed(name, repoHint(err, d.spec.Repo.URL), "check repo.url and its credentials")
		return false
	}
	d.ok(name, "%s", redact(d.spec.Repo.URL))
	if refs[branchPrefix+r.branch()] == "" {
		d.failed("source branch", fmt.Errorf("there is no branch %s", r.branch()), "push it, or name another one with --branch")
		return true
	}
	d.ok("source branch", "%s at %s", r.branch(), view.Short(refs[branchPrefix+r.branch()]))
	return true
}

// fleet validates the head of the source branch.
func (d *doctor) fleet(ctx context.Context) {
	const name = "fleet"
	ref := branchPrefix + d.reader.branch()
	refs, err := d.reader.fleet.Refs(ctx, ref)
	if err == nil && refs[ref] == "" {
		d.skipped(name, "there is no source branch")
		return
	}
	if err == nil {
		err = d.reader.fleet.Fetch(ctx, ref, refs[ref], false)
	}
	var fleet *schema.Fleet
	if err == nil {
		loader := schema.Loader{OwnVersion: d.app.build.Version, ProblemsOnly: true}
		fleet, err = loader.Load(sweep.Source(ctx, d.reader.fleet, refs[ref]))
	}
	switch {
	case err != nil:
		d.failed(name, err, "the repository can be reached, and cannot be read: git fsck says more")
	case !fleet.Valid():
		wrong, _ := tally(fleet.Problems)
		d.failed(name, fmt.Errorf("%s, such as %s", plural(wrong, "error"), problemText(firstError(fleet.Problems))), "gitopsd validate in a clone shows all of them")
	default:
		d.ok(name, "valid: %s in %s", plural(len(fleet.Devices), "device"), plural(fleet.Files, "document"))
	}
}

func firstError(list []schema.Problem) schema.Problem {
	for _, p := range list {
		if p.Severity == schema.SeverityError {
			return p
		}
	}
	return schema.Problem{}
}

func (d *doctor) reports(ctx context.Context) {
	const name = "repository of the reports"
	if d.reader.reports == d.reader.fleet {
		d.skipped(name, "devices report to the fleet repository")
		return
	}
	where, _ := reportsOf(d.spec.Repo, d.spec.Reports)
	if _, err := d.reader.reports.Refs(ctx, d.reader.reportRefs()); err != nil {
		d.failed(name, repoHint(err, where.URL), "check reports.repo.url and its credentials")
		return
	}
	d.ok(name, "%s", redact(where.URL))
}

// refs pushes one ref of each kind and removes it again.
func (d *doctor) refs(ctx context.Context) {
	// No device can have this name, and no person meant this branch.
	name := "_gitopsd-doctor-" + strings.ToLower(rand.Text())
	beside := func(branch string) string { return path.Join(branchPrefix, path.Dir(branch), name) }
	kinds := []struct {
		name, ref, remedy string
		at                *repo.Repo
	}{
		{"push: status branch", beside(d.reader.statusBranch()), "let the daemon's account push branches beside " + d.reader.statusBranch() + ", or name another one with --status-branch", d.reader.fleet},
		{"push: delivery refs", or(d.spec.Refs.Devices, schema.DefaultDeviceRefs) + name, "let the daemon's account push and remove these refs, or set refs.devices to a folder of branches such as refs/heads/gitopsd/devices/", d.reader.fleet},
		{"push: report refs", d.reader.reportRefs() + name, "devices push these, with their credentials: let them, or set refs.reports to a folder of branches such as refs/heads/gitopsd/reports/", d.reader.reports},
		{"push: brake branch", beside(schema.BrakeBranch), "let those who may stop the fleet push branches beside " + schema.BrakeBranch, d.reader.fleet},
	}
	stays := ""
	for i, kind := range kinds {
		if kind.at.Path() != "" && isWorkTree(d.spec.Repo.URL) {
			d.skipped(kind.name, "the repository is a working tree of this machine")
			continue
		}
		if stays != "" {
			// A ref below the deliveries that stays would look like one.
			d.skipped(kind.name, "not tried, because "+stays+" could not be removed")
			continue
		}
		// Each name is its own: the first and the last lie in one folder.
		removed, err := tryRef(ctx, kind.at, fmt.Sprint(kind.ref, "-", i))
		switch {
		case err == nil:
			d.ok(kind.name, "%s*", strings.TrimSuffix(kind.ref, name))
		case removed:
			d.failed(kind.name, err, kind.remedy)
		default:
			stays = fmt.Sprint(kind.ref, "-", i)
			d.wrong(kind.name, fmt.Sprintf("%s was pushed and cannot be removed: %v", stays, err),
				"let the daemon's account remove refs (receive.denyDeletes, rules for branches), and remove this one: git push "+shellWord(redact(d.spec.Repo.URL))+" :"+stays)
		}
	}
}

// tryRef pushes a ref and removes it again. removed says that it is not there
// afterwards.
func tryRef(ctx context.Context, r *repo.Repo, ref string) (removed bool, err error) {
	blob, err := r.PutBlob(ctx, []byte("gitopsd doctor tried whether this can be pushed; it may be removed\n"))
	if err != nil {
		return true, err
	}
	commit, err := r.Orphan(ctx, map[string]string{"README": blob})
	if err != nil {
		return true, err
	}
	move := func(from, to string) error {
		refused, err := r.Publish(ctx, nil, map[string][2]string{ref: {from, to}})
		if why, no := refused[ref]; err == nil && no {
			err = fmt.Errorf("%s is refused: %s", ref, why)
		}
		return err
	}
	if err := move("", commit); err != nil {
		// After a line that broke it is not known what has moved.
		if refs, listErr := r.Refs(ctx, ref); listErr == nil && refs[ref] == "" {
			return true, err
		}
		return move(commit, "") == nil, err
	}
	if err := move(commit, ""); err != nil {
		return false, err
	}
	return true, nil
}

func (d *doctor) github(ctx context.Context) {
	const name = "GitHub"
	cfg, wanted, err := githubConfig(d.spec)
	if !wanted {
		d.skipped(name, "not configured")
		return
	}
	var list []github.Finding
	if err == nil {
		list, err = github.Check(ctx, cfg)
	}
	for _, f := range list {
		if f.OK {
			d.ok(name+": "+f.Name, "%s", f.Detail)
		} else {
			d.wrong(name+": "+f.Name, f.Detail, f.Remedy)
		}
	}
	if err != nil {
		d.failed(name, err, "check the settings of github, or leave them away")
	}
}
