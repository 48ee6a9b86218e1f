package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/internal/edit"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// Where the brake is. The names are fixed: whoever stops a fleet in a hurry
// must not have to look up a configuration.
const (
	brakeBranch = schema.BrakeBranch
	brakeRef    = "refs/heads/" + brakeBranch
	brakeFile   = "brake.yaml"
)

// newBrakeFile is what the file begins as.
const newBrakeFile = "# Stopped at once and without a review; gitopsd brake off takes it away.\n" +
	"apiVersion: " + schema.APIVersion + "\nkind: Brake\n"

// brake is the branch of the brake in an open repository.
type brake struct {
	spec  schema.ServeSpec
	repo  *repo.Repo
	store string
	pause time.Duration // before the second try at most
}

// openBrake opens the repository; what has to be fetched goes into a temporary
// folder that close removes.
func openBrake(spec schema.ServeSpec, author repo.Author) (*brake, error) {
	store, err := os.MkdirTemp("", "gitopsd-brake-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary folder: %w", err)
	}
	b := &brake{spec: spec, store: store, pause: brakePause}
	b.repo, err = repo.Open(repo.Config{
		URL: spec.Repo.URL, Credentials: credentialsOf(spec.Repo), Store: filepath.Join(store, "fleet.git"),
		Timeout: spec.Timeout.D(defaultTimeout), Author: author, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, errors.Join(openError("the repository", spec.Repo.URL, err), os.RemoveAll(store))
	}
	return b, nil
}

func (b *brake) close() error { return errors.Join(b.repo.Close(), os.RemoveAll(b.store)) }

// brakeState is the brake as one commit has it.
type brakeState struct {
	commit  string // "" = the branch is not there
	text    []byte // nil = there is no file
	reading schema.BrakeReading
	mended  string // what the commit before could not be read for
	// inTheWay are paths where the file should be and something else is.
	inTheWay []string
}

func (b *brake) read(ctx context.Context, history bool) (brakeState, error) {
	refs, err := b.repo.Refs(ctx, brakeRef)
	if err != nil {
		return brakeState{}, fmt.Errorf("cannot read the brake: %w", err)
	}
	tip := refs[brakeRef]
	if tip == "" {
		return brakeState{}, nil
	}
	if err := b.repo.Fetch(ctx, brakeRef, tip, history); err != nil {
		return brakeState{}, fmt.Errorf("cannot read the brake: %w", err)
	}
	return b.tree(ctx, tip)
}

// tree reads the brake of one commit that was fetched.
func (b *brake) tree(ctx context.Context, commit string) (brakeState, error) {
	at, err := sweep.ReadBrake(ctx, b.repo, commit)
	if err != nil {
		return brakeState{}, fmt.Errorf("cannot read the brake: %w", err)
	}
	return brakeState{commit: commit, text: at.Text, reading: at.Reading, inTheWay: at.InTheWay}, nil
}

// brakeTries is how often somebody else may be faster. Each try reads what the
// other one wrote; more people do not press one button at one time.
const brakeTries = 10

// brakePause is the longest wait before the second try; it grows with each, so
// that those who ran into each other do not again.
const brakePause = 100 * time.Millisecond

// move puts a brake on or, without a reason, takes it off, and pushes that by
// compare-and-swap: who loses reads again and tries again.
func (b *brake) move(ctx context.Context, target brakeTarget, reason string, now time.Time) (state brakeState, changed bool, err error) {
	for try := range brakeTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return state, false, ctx.Err()
			case <-time.After(rand.N(time.Duration(try) * b.pause)):
			}
		}
		if state, err = b.read(ctx, false); err != nil {
			return state, false, err
		}
		text, err := moved(state, target, reason)
		if err != nil || text == nil {
			return state, false, err
		}
		var next string
		next, err = b.push(ctx, state, text, brakeMessage(target, reason), now)
		if err == nil {
			return brakeState{commit: next, text: text, reading: schema.ReadBrake(brakeFile, text), mended: state.reading.Unreadable}, true, nil
		}
		var e *repo.Error
		if !errors.As(err, &e) || e.Kind() != "race" && e.Kind() != "locked" {
			return state, false, fmt.Errorf("cannot push the brake: %w", err)
		}
	}
	return state, false, withHint(fmt.Errorf("cannot push the brake: others were faster %d times", brakeTries), "try again")
}

// push makes a commit and moves the branch to it, if that is still where it
// was.
func (b *brake) push(ctx context.Context, was brakeState, text []byte, message string, now time.Time) (string, error) {
	blob, err := b.repo.PutBlob(ctx, text)
	if err != nil {
		return "", err
	}
	changes := map[string]string{}
	for _, path := range was.inTheWay {
		changes[path] = ""
	}
	parent := was.commit
	if len(changes) > 0 {
		if parent, err = b.repo.Commit(ctx, parent, changes, now, "brake: make room for the file"); err != nil {
			return "", err
		}
	}
	commit, err := b.repo.Commit(ctx, parent, map[string]string{brakeFile: blob}, now, message)
	if err != nil {
		return "", err
	}
	_, err = b.repo.Publish(ctx, map[string][2]string{brakeRef: {was.commit, commit}}, nil)
	if err == nil {
		return commit, nil
	}
	// After a line that broke it is not known what has moved.
	if refs, listErr := b.repo.Refs(ctx, brakeRef); listErr == nil && refs[brakeRef] == commit {
		return commit, nil
	}
	return "", err
}

func brakeMessage(target brakeTarget, reason string) string {
	if reason == "" {
		return subject("brake off: %s", target)
	}
	return subject("brake on: %s", target) + "\n\n" + reason
}

// moved is the text of a brake with one thing stopped, or without a reason let
// go; nil = it is so already. What cannot be read stops everything, and still
// does afterwards, in words that can be.
func moved(state brakeState, target brakeTarget, reason string) ([]byte, error) {
	want := cloneBrake(state.reading.Brake)
	if !setBrake(&want, target, reason) {
		return nil, nil
	}
	text := state.text
	if text == nil {
		text = []byte(newBrakeFile)
	}
	if state.reading.Unreadable == "" {
		form, err := edit.FormOf(schema.KindBrake, schema.Brake{})
		if err != nil {
			return nil, err
		}
		if reason == "" {
			text, err = form.Remove(text, target.path())
		} else {
			text, err = form.Set(text, append(target.path(), "reason"), reason)
		}
		// A file that a person wrote may be too free to be edited; what it says
		// is known all the same.
		if after := schema.ReadBrake(brakeFile, text); err == nil && after.Unreadable == "" && sameBrake(after.Brake, want) {
			return text, nil
		}
	}
	text, err := schema.Encode(want)
	if err != nil {
		return nil, withHint(fmt.Errorf("cannot write %s: %w", brakeFile, err), "correct it by hand on the branch %s", schema.BrakeBranch)
	}
	return text, nil
}

func cloneBrake(b schema.Brake) schema.Brake {
	b.APIVersion, b.Kind = schema.APIVersion, schema.KindBrake
	b.Policies, b.Devices = maps.Clone(b.Policies), maps.Clone(b.Devices)
	return b
}

func sameBrake(a, b schema.Brake) bool {
	return reflect.DeepEqual(a.All, b.All) && maps.Equal(a.Policies, b.Policies) && maps.Equal(a.Devices, b.Devices)
}

// setBrake stops one thing, or without a reason lets it go, and says whether
// that is a change.
func setBrake(b *schema.Brake, target brakeTarget, reason string) bool {
	if target.all {
		before := b.All
		if b.All = nil; reason != "" {
			b.All = &schema.BrakeReason{Reason: reason}
		}
		return !reflect.DeepEqual(before, b.All)
	}
	list, name := &b.Policies, target.policy
	if target.device != "" {
		list, name = &b.Devices, target.device
	}
	before, there := (*list)[name]
	if reason == "" {
		delete(*list, name)
		return there
	}
	if *list == nil {
		*list = map[string]schema.BrakeReason{}
	}
	(*list)[name] = schema.BrakeReason{Reason: reason}
	return !there || before.Reason != reason
}

// names are the policies and devices of the source branch, by their files.
func (b *brake) names(ctx context.Context) (policies, devices []string, err error) {
	ref := "refs/heads/" + or(b.spec.Branch, schema.DefaultBranch)
	refs, err := b.repo.Refs(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	if refs[ref] == "" {
		return nil, nil, fmt.Errorf("there is no branch %s", or(b.spec.Branch, schema.DefaultBranch))
	}
	if err := b.repo.Fetch(ctx, ref, refs[ref], false); err != nil {
		return nil, nil, err
	}
	err = b.repo.Walk(ctx, refs[ref], func(p, _ string, _ uint32) error {
		name, isDocument := strings.CutSuffix(path.Base(p), ".yaml")
		switch {
		case !isDocument:
		case path.Dir(p) == "policies":
			policies = append(policies, name)
		case strings.HasPrefix(p, "devices/") && !strings.Contains(p, "/files/"):
			devices = append(devices, name)
		}
		return nil
	})
	slices.Sort(devices)
	return policies, devices, err
}
