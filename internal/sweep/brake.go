package sweep

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

const (
	// brakeFile is the one document of the brake branch.
	brakeFile = "brake.yaml"

	// maxBrake bounds it, in bytes: it is written by hand.
	maxBrake = 1 << 20

	// modeRegular and modeExecutable are git's for files.
	modeRegular, modeExecutable = 0o100644, 0o100755

	conditionBrake = "Brake"
	reasonBrakeOn  = "BrakeOn"
	reasonBrakeBad = "BrakeUnreadable"
	byBrake        = "by the brake: "
)

// brake is what the brake branch said at a commit; the zero brake is off.
type brake struct {
	commit  string
	reading schema.BrakeReading
}

// readBrake reads the brake branch, as far as it is not known yet. What stands
// there and cannot be read stops everything: somebody wanted to stop
// something. Only a remote that cannot be asked is no answer.
func (p *pass) readBrake(ctx context.Context) error {
	d := p.d
	p.brakeTip = p.refs[branchRef(schema.BrakeBranch)]
	switch p.brakeTip {
	case "":
		d.brake = brake{}
		return nil
	case d.brake.commit:
		return nil
	}
	err := d.cfg.Remote.Fetch(ctx, branchRef(schema.BrakeBranch), p.brakeTip, false)
	var state BrakeState
	if err == nil {
		state, err = ReadBrake(ctx, d.cfg.Remote, p.brakeTip)
	}
	switch {
	case err == nil && (state.Text != nil || state.Reading.Unreadable == ""):
		d.brake = brake{commit: p.brakeTip, reading: state.Reading}
	case err == nil: // looked at again, as below: it may be there again
		d.brake = brake{reading: state.Reading}
	case isBroken(err): // a replica may lag
		d.brake = brake{reading: schema.StoppedBrake(brakeFile, cause(err))}
	default:
		return fmt.Errorf("read the brake branch %s: %w", schema.BrakeBranch, err)
	}
	return nil
}

// BrakeState is what one commit of the brake branch says.
type BrakeState struct {
	Text     []byte // of the document; nil = there is none, or none that can be read
	Reading  schema.BrakeReading
	InTheWay []string // paths at which something else stands in its place
}

// ReadBrake reads the brake at a fetched commit. What stands there and cannot
// be understood is a reading that stops everything; the error is for objects
// that cannot be had. A commit that has neither the file nor another that looks
// like it is a brake that is off.
func ReadBrake(ctx context.Context, r Remote, commit string) (BrakeState, error) {
	var s BrakeState
	blob, misnamed := "", ""
	if err := r.Walk(ctx, commit, func(path, b string, mode uint32) error {
		switch {
		case path == brakeFile && (mode == modeRegular || mode == modeExecutable):
			blob = b
		case path == brakeFile || strings.HasPrefix(path, brakeFile+"/"):
			s.InTheWay = append(s.InTheWay, path)
		case schema.BrakeLikeness(path) > schema.BrakeLikeness(misnamed):
			misnamed = path
		}
		return nil
	}); err != nil {
		return s, err
	}
	switch {
	case len(s.InTheWay) > 0:
		s.Reading = schema.StoppedBrake(brakeFile, "it is no regular file")
	case blob != "":
		return s, s.readDocument(ctx, r, blob)
	case misnamed != "":
		s.Reading = schema.MisnamedBrake(brakeFile, misnamed)
	}
	return s, nil
}

func (s *BrakeState) readDocument(ctx context.Context, r Remote, blob string) error {
	text, err := r.Blob(ctx, blob, maxBrake)
	switch kind := kindOf(err); {
	case err == nil:
		s.Text, s.Reading = text, schema.ReadBrake(brakeFile, text)
		return nil
	case kind == kindRefused || kind == kindCorrupt: // too large, or damaged
		s.Reading = schema.StoppedBrake(brakeFile, cause(err))
		return nil
	}
	return err
}

// Braked is what a brake holds back.
func Braked(on *schema.Brake) Restrictions {
	r := Restrictions{Hold: map[string]string{}, Paused: map[string]string{}, Disabled: map[string]bool{}}
	if on.All != nil {
		r.All = byBrake + oneLine(on.All.Reason)
	}
	for name, why := range on.Policies {
		r.Paused[name] = byBrake + oneLine(why.Reason)
	}
	for id, why := range on.Devices {
		r.Hold[id] = byBrake + oneLine(why.Reason)
	}
	return r
}

// and adds other restrictions; where both know a reason, the first stands.
func (r Restrictions) and(o Restrictions) Restrictions {
	both := Restrictions{All: or(r.All, o.All), Hold: maps.Clone(o.Hold), Paused: maps.Clone(o.Paused), Disabled: maps.Clone(o.Disabled)}
	maps.Copy(both.Hold, r.Hold)
	maps.Copy(both.Paused, r.Paused)
	maps.Copy(both.Disabled, r.Disabled)
	return both
}

// noticeBrake says in fleet.yaml that the brake is on, as long as it is, and
// which of its names hold nothing back.
func (p *pass) noticeBrake(ctx context.Context) {
	d := p.d
	b := &d.brake.reading
	if b.Brake.Empty() {
		switch {
		case !d.news("brake", ""):
		case p.brakeTip == "": // nobody took it off with the commands
			d.log.WarnContext(ctx, "the brake branch is gone; nothing is held back by it any more", keyBranch, schema.BrakeBranch)
		default:
			d.log.InfoContext(ctx, "the brake is off")
		}
		return
	}
	c := schema.Condition{Type: conditionBrake, Reason: reasonBrakeOn, Message: p.brakeText(), Remedy: brakeRemedy(&b.Brake)}
	if b.Unreadable != "" {
		c.Reason = reasonBrakeBad
		c.Remedy = "correct " + brakeFile + " on the branch " + schema.BrakeBranch + "; to stop nothing, delete it"
		if b.Misnamed != "" {
			c.Remedy = "rename " + oneLine(b.Misnamed) + " to " + brakeFile + " on the branch " + schema.BrakeBranch + "; to stop nothing, delete it"
		}
	}
	p.notices = append(p.notices, c)
	if d.news("brake", c.Message) {
		d.log.WarnContext(ctx, c.Message, keyReason, c.Reason, keyRemedy, c.Remedy)
	}
}

// brakeRemedy is the command that ends the first of the stops; each has its
// own.
func brakeRemedy(on *schema.Brake) string {
	first := func(names []string) string {
		if strings.HasPrefix(names[0], "-") {
			return strangeName
		}
		return refWord(names[0])
	}
	target := "--all"
	switch policies, devices := slices.Sorted(maps.Keys(on.Policies)), slices.Sorted(maps.Keys(on.Devices)); {
	case on.All != nil:
	case len(policies) > 0:
		target = first(policies)
	case len(devices) > 0:
		target = "--device " + first(devices)
	}
	text := "gitopsd brake status says since when and by whom; once it may go on: gitopsd brake off " + target
	if more := len(on.Policies) + len(on.Devices); more > 1 || on.All != nil && more > 0 {
		text += ", and the others by their names"
	}
	return text
}

// brakeText lists what is held back.
func (p *pass) brakeText() string {
	const shown = 10 // names of a kind; the document has all
	on := &p.d.brake.reading.Brake
	var parts []string
	if on.All != nil {
		parts = append(parts, "everything is paused: "+oneLine(on.All.Reason))
	}
	list := func(what string, names []string, known func(string) bool) {
		more := len(names) - shown
		for _, name := range names[:min(len(names), shown)] {
			text := what + " " + quoteID(name)
			if p.fleet != nil && !known(name) {
				text += " (there is none of that name)"
			}
			parts = append(parts, text)
		}
		if more > 0 {
			parts = append(parts, fmt.Sprintf("and %d more", more))
		}
	}
	list("policy", slices.Sorted(maps.Keys(on.Policies)), func(n string) bool { return p.fleet.fleet.Policy(n) != nil })
	list("device", slices.Sorted(maps.Keys(on.Devices)), func(n string) bool { return p.fleet.fleet.Member(n) != nil })
	return "the brake is on: " + strings.Join(parts, ", ")
}
