package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// standing is what a device has of a unit that it stands on.
type standing int

const (
	// needed: when it stops, the agent or all that speaks to services does.
	needed standing = iota + 1
	// handedOn: it may restart, because systemd keeps what it holds.
	handedOn
	// ends: it is what a boot leads to, or what ends the device.
	ends
)

// essentialUnits are those that the device or the agent stands on: without
// them nobody could put anything right any more. Of these a spec may set
// drop-ins only.
var essentialUnits = map[string]standing{
	"-.mount": needed, "-.slice": needed, "system.slice": needed, "init.scope": needed,
	"dbus.service": needed, "dbus.socket": needed, "dbus-broker.service": needed,
	"systemd-journald.service": handedOn, "systemd-journald.socket": handedOn, "systemd-journald-dev-log.socket": handedOn,
	"systemd-udevd.service": handedOn, "systemd-udevd-control.socket": handedOn, "systemd-udevd-kernel.socket": handedOn,
	"sysinit.target": needed, "basic.target": needed, "local-fs.target": ends, "local-fs-pre.target": ends,
	"default.target": ends, "rescue.target": ends, "emergency.target": ends, "rescue.service": ends, "emergency.service": ends,
	"shutdown.target": ends, "umount.target": ends, "final.target": ends, "exit.target": ends, "initrd.target": ends,
	"reboot.target": ends, "poweroff.target": ends, "halt.target": ends, "kexec.target": ends,
	"soft-reboot.target": ends, "suspend.target": ends, "hibernate.target": ends, "sleep.target": ends,
	"systemd-reboot.service": ends, "systemd-poweroff.service": ends, "systemd-halt.service": ends,
	"systemd-kexec.service": ends, "systemd-soft-reboot.service": ends, "systemd-exit.service": ends,
}

// standingOf is that of a unit by its name, 0 for one that a spec may have. A
// file system that holds what is the agent's is needed as any other unit is.
func standingOf(name string) standing {
	if st := essentialUnits[name]; st != 0 {
		return st
	}
	if hiddenBy(name) != "" {
		return needed
	}
	return 0
}

// ownUnit says whether a unit is gitopsd's own: what keeps the device can
// neither stop nor restart itself in the middle of that.
func ownUnit(name string) bool {
	return strings.HasPrefix(name, "gitopsd.") || strings.HasPrefix(name, "gitopsd-") || strings.HasPrefix(name, "gitopsd@")
}

// MayRestart says whether a unit can be restarted because a file of it has
// changed: not one that takes the agent or the device with it.
func MayRestart(name string) bool {
	st := standingOf(name)
	return !ownUnit(name) && (st == 0 || st == handedOn)
}

// mountedAt is the path at which a unit mounts a file system, "" for a unit of
// another type.
func mountedAt(unit string) string {
	stem, isMount := strings.CutSuffix(unit, ".mount")
	if !isMount {
		if stem, isMount = strings.CutSuffix(unit, ".automount"); !isMount {
			return ""
		}
	}
	if stem == "-" {
		return "/"
	}
	return unitEscape.ReplaceAllStringFunc("/"+strings.ReplaceAll(stem, "-", "/"), func(code string) string {
		c, err := strconv.ParseUint(code[2:], 16, 8)
		if err != nil {
			return code
		}
		return string([]byte{byte(c)})
	})
}

// unitEscape is a byte in the name of a unit that systemd-escape(1) has written.
var unitEscape = regexp.MustCompile(`\\x[0-9a-fA-F]{2}`)

// hiddenBy is the place of the kernel's, of the agent's, of its units or of more
// that a mount unit would cover, or lie in; "" = none. What lies in the kernel's
// places is mounted there on every device.
func hiddenBy(unit string, more ...string) string {
	at := mountedAt(unit)
	if at == "" {
		return ""
	}
	for _, p := range slices.Concat(protectedPaths, []string{"/etc/systemd/system", "/usr/lib/systemd/system"}, more) {
		if at == "/" || at == p || strings.HasPrefix(p, at+"/") {
			return p
		}
	}
	for _, p := range slices.Concat(agentPaths, more) {
		if strings.HasPrefix(at, p+"/") {
			return p
		}
	}
	return ""
}

const dropInsOnly = "the device cannot do without it, so that only drop-ins can be added"

// unitProtected says why a spec cannot have a unit as it is written, or "".
func unitProtected(name string, unit map[string]any) (why, hint string) {
	if ownUnit(name) {
		return "it is gitopsd's own", ""
	}
	if standingOf(name) == 0 {
		return "", ""
	}
	for field, v := range unit {
		if v == nil || field == "dropIns" {
			continue
		}
		if hidden := hiddenBy(name); hidden != "" && essentialUnits[name] == 0 {
			return fmt.Sprintf("what it mounts at %s has to do with %s", quote(mountedAt(name)), hidden),
				"mount it elsewhere; what has to be there before the agent is of the image or of /etc/fstab"
		}
		return dropInsOnly, ""
	}
	return "", ""
}

// systemdFolder begins where systemd finds units, links to them and drop-ins
// (systemd.unit(5)).
var systemdFolder = regexp.MustCompile(`^/((etc|run|lib|usr/lib|usr/local/lib)/systemd/system(\.control|\.attached)?|run/systemd/(transient|generator(\.early|\.late)?))/`)

// UnitOfFile is the unit that a path is the file of where systemd finds it, "" for
// any other path, a drop-in's too.
func UnitOfFile(p string) string {
	folder := systemdFolder.FindString(p)
	name := p[len(folder):]
	if folder == "" || strings.Contains(name, "/") {
		return ""
	}
	return name
}

// UnitFileProblem says why a spec cannot manage a path where systemd finds its
// units, or "". The agent may need more paths than those that are known here.
func UnitFileProblem(p string, more ...string) string {
	why, _ := unitFileProtected(p, more...)
	return why
}

func unitFileProtected(p string, more ...string) (why, hint string) {
	folder := systemdFolder.FindString(p)
	if folder == "" {
		return "", ""
	}
	name, below, nested := strings.Cut(p[len(folder):], "/")
	switch {
	case slices.ContainsFunc(append(strings.Split(below, "/"), name), ownUnit):
		return "it is of a unit of gitopsd's own", "choose another place"
	case name == "service.d":
		return "what is there holds for every service, gitopsd's own too", "add a drop-in to each unit, or set a default below /etc/systemd/system.conf.d"
	case !nested && (standingOf(name) != 0 || hiddenBy(name, more...) != ""):
		return dropInsOnly, "add a drop-in in " + clip(name) + ".d"
	}
	return "", ""
}
