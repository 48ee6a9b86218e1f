package reconcile

import (
	"cmp"
	"context"
	"maps"
	"path"
	"reflect"
	"slices"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// comparer tells what of one part of a device is not as a spec says, where
// another is current.
type comparer func(ctx context.Context, cur, spec *schema.Spec) ([]Change, error)

// differences is what an update to the spec would change, also what of it it
// would be refused for. The error is for what could not be compared now; the
// rest is told all the same.
func (a *Agent) differences(ctx context.Context, cur, spec *schema.Spec) ([]Change, error) {
	refused := func(err error) comparer {
		return func(context.Context, *schema.Spec, *schema.Spec) ([]Change, error) { return nil, err }
	}
	return compareAll(ctx, cur, spec, refused(a.requirements(spec)), refused(a.checkUnits(ctx, wholeSet(spec))),
		a.comparePaths, a.compareUnits, a.compareApplications, a.compareOS, a.compareProgram)
}

// drifted is what of the current spec the device is not, as [Agent.repair] finds
// it.
func (a *Agent) drifted(ctx context.Context, cur *schema.Spec) ([]Change, error) {
	return compareAll(ctx, cur, cur, a.comparePaths, a.compareUnits, a.stoppedApplications, a.compareOS, a.compareProgram)
}

func compareAll(ctx context.Context, cur, spec *schema.Spec, all ...comparer) (list []Change, err error) {
	var errs []error
	for _, compare := range all {
		found, err := compare(ctx, cur, spec)
		if err != nil {
			f := failure.From(err)
			if f.Class == schema.ClassPermanent {
				found = append(found, Change{Difference: schema.Difference{Field: f.Component, Name: f.Element, Do: schema.DoCannot, Detail: oneLine(f.Error())}})
			} else {
				errs = append(errs, err)
			}
		}
		list = append(list, found...)
	}
	return withTheirFiles(list), failure.Join(errs...)
}

// withTheirFiles tells of a unit and its file as one.
func withTheirFiles(list []Change) []Change {
	file := map[string]int{}
	for i := range list {
		if f := list[i].file; f != nil && f.Err == nil {
			file[f.Path] = i
		}
	}
	drop := map[int]bool{}
	for i := range list {
		one := &list[i]
		at, has := file[path.Join(unitFolder, one.Name)]
		if one.Field != "units" || !has || one.Do == schema.DoCannot {
			continue
		}
		drop[at] = true
		one.file, one.Path = list[at].file, list[at].Name
	}
	var kept []Change
	for i := range list {
		if !drop[i] {
			kept = append(kept, list[i])
		}
	}
	return kept
}

func (a *Agent) comparePaths(_ context.Context, _, spec *schema.Spec) ([]Change, error) {
	found, err := a.files.Compare(a.withoutMasks(wholeSet(spec)), a.payload)
	var list []Change
	for i := range found {
		list = append(list, Change{Difference: differenceOf(&found[i]), file: &found[i]})
	}
	return list, err
}

// named tells by their names what of two specs differs, where nobody can say
// what of it is so already.
func named[T any](field string, from, to map[string]*T) []Change {
	var list []Change
	all := maps.Clone(to)
	if all == nil {
		all = map[string]*T{}
	}
	maps.Copy(all, from)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		do := schema.DoChange
		switch {
		case reflect.DeepEqual(from[name], to[name]):
			continue
		case from[name] == nil:
			do = schema.DoCreate
		case to[name] == nil:
			do = schema.DoRemove
		}
		list = append(list, Change{Difference: schema.Difference{Field: field, Name: name, Do: do}})
	}
	return list
}

func (a *Agent) compareUnits(ctx context.Context, cur, spec *schema.Spec) ([]Change, error) {
	if a.units == nil {
		return named("units", cur.Units, spec.Units), nil
	}
	found, err := a.units.Compare(ctx, spec)
	var list []Change
	for _, d := range found {
		list = append(list, Change{Difference: schema.Difference{Field: "units", Name: d.Unit, Do: doOfUnit(&d), Detail: oneLine(d.Why)}})
	}
	return list, err
}

func doOfUnit(d *units.Difference) string {
	switch {
	case d.Comes:
		return schema.DoCreate
	case d.Goes:
		return schema.DoRemove
	case d.Dropped:
		return schema.DoRestore
	}
	return schema.DoChange
}

func (a *Agent) compareApplications(ctx context.Context, cur, spec *schema.Spec) ([]Change, error) {
	if a.units == nil {
		return named("applications", cur.Applications, spec.Applications), nil
	}
	found, err := a.apps.Compare(ctx, spec, a.payload, a.files.Ahead(wholeSet(spec), a.payload))
	var list []Change
	for _, c := range found {
		list = append(list, Change{Difference: schema.Difference{Field: "applications", Name: c.Name, Do: c.Do, Detail: oneLine(c.Why)}})
	}
	return list, err
}

func (a *Agent) stoppedApplications(ctx context.Context, cur, _ *schema.Spec) ([]Change, error) {
	if a.units == nil {
		return nil, nil
	}
	stopped, err := a.apps.Stopped(ctx, cur)
	var list []Change
	for _, name := range slices.Sorted(maps.Keys(stopped)) {
		list = append(list, Change{Difference: schema.Difference{Field: "applications", Name: name, Do: schema.DoChange, Detail: oneLine(stopped[name])}})
	}
	return list, err
}

// compareOS asks what is booted. What the name of an image stands for would have
// to be fetched, so the name alone is compared where the device is not on it.
func (a *Agent) compareOS(ctx context.Context, cur, spec *schema.Spec) ([]Change, error) {
	if spec.OS == nil || a.os == nil {
		return nil, nil
	}
	booted, err := a.os.Booted(ctx)
	if err != nil {
		return nil, failureOf("os", spec.OS.Image, err)
	}
	want := spec.OS.Image
	if cur.OS != nil && cur.OS.Image == want {
		want = cmp.Or(a.store.current.OS, want)
	}
	if booted == want {
		return nil, nil
	}
	return []Change{{Difference: schema.Difference{Field: "os", Name: spec.OS.Image, Do: schema.DoChange, Detail: oneLine(booted + " is booted")}}}, nil
}

// compareProgram goes by the specs where this process is not the agent.
func (a *Agent) compareProgram(_ context.Context, cur, spec *schema.Spec) ([]Change, error) {
	if a.runs(spec.Agent) && (a.cfg.Program != nil || reflect.DeepEqual(cur.Agent, spec.Agent)) {
		return nil, nil
	}
	one := schema.Difference{Field: programComponent, Name: "program", Do: schema.DoRestore, Detail: versionOf("")}
	if spec.Agent != nil {
		one.Do, one.Detail = schema.DoChange, oneLine(a.cfg.AgentVersion+" → "+spec.Agent.Version)
	}
	return []Change{{Difference: one}}, nil
}
