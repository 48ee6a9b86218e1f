package repo

import (
	"context"
	"strings"
)

// isIncomplete recognises that objects were missing on the server.
func isIncomplete(reason string) bool {
	return strings.Contains(reason, "missing necessary objects") || strings.Contains(reason, "unpack: ") ||
		strings.Contains(reason, "unresolved deltas") || strings.Contains(reason, "bad pack")
}

func allIncomplete(cmds []refUpdate, refused map[string]string) bool {
	for _, u := range cmds {
		if !isIncomplete(refused[u.name]) {
			return false
		}
	}
	return true
}

// forgive takes those out of the refused that are where they should be: an
// earlier push had moved them, though its answer was lost.
func (r *Repo) forgive(ctx context.Context, cmds []refUpdate, refused map[string]string) {
	if len(refused) == 0 || ctx.Err() != nil {
		return
	}
	names := make([]string, 0, len(refused))
	for name := range refused {
		names = append(names, name)
	}
	refs, err := r.list(ctx, names)
	if err != nil {
		return
	}
	for _, u := range cmds {
		if refs[u.name] == u.new {
			delete(refused, u.name)
		}
	}
}

func withNotes(why, notes string) string {
	if notes == "" {
		return why
	}
	return why + "; the server says: " + notes
}

// outcome is nil when every ref moved.
func outcome(res *pushResult, err error, cmds []refUpdate) error {
	if err != nil {
		return err
	}
	for _, u := range cmds {
		why := res.reason(u.name)
		if why == "" {
			continue
		}
		text := withNotes(why, res.notes)
		kind := kindRefused
		switch {
		case isLocked(text):
			return fail(kindLocked, "%s: %s", u.name, text).hint("it is tried again; a lock file that stays has to be removed on the server")
		case isRace(why):
			kind = kindRace
		}
		return fail(kind, "%s: %s", u.name, text)
	}
	return nil
}

// isRace recognises what servers say when a ref no longer had its old value
// or was being written.
func isRace(why string) bool {
	for _, s := range []string{"failed to update ref", "cannot lock ref", "failed to lock", "incorrect old value",
		"already exists", "stale info", "fetch first", "reference not found", "non-fast-forward"} {
		if strings.Contains(why, s) {
			return true
		}
	}
	return false
}

// isLocked recognises the lock of another process, which git itself calls a
// failed update as it does a race. Whether it was one, judge finds out.
func isLocked(why string) bool {
	return strings.Contains(why, ".lock': File exists")
}

// judge looks at where the refs of a push that failed stand now: all of them
// moved after all, or another writer's doing (a race, whatever words the
// server had for it), or neither.
func (c *connection) judge(ctx context.Context, cmds []refUpdate, why error) (moved bool, verdict error) {
	if ctx.Err() != nil || hasKind(why, kindAuth) || hasKind(why, kindHostKey) {
		return false, why
	}
	names := make([]string, len(cmds))
	for i, u := range cmds {
		names[i] = u.name
	}
	refs, err := c.list(ctx, names)
	if err != nil {
		return false, why
	}
	moved = true
	for _, u := range cmds {
		switch now := refs[u.name]; {
		case now == u.new:
		case now != u.old:
			return false, fail(kindRace, "%s is at %s, not at %s", u.name, orNone(now), orNone(u.old))
		default:
			moved = false
		}
	}
	return moved, nil
}
