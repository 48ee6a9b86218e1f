package schema

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// quadletKinds are the file types of quadlet, with what podman puts behind the
// name of the unit that it makes of one (podman-systemd.unit(5)).
var quadletKinds = map[string]string{
	".container": "", ".kube": "", ".volume": "-volume", ".network": "-network",
	".pod": "-pod", ".image": "-image", ".build": "-build",
}

// IsQuadlet says whether podman makes a unit of a file with that name.
func IsQuadlet(file string) bool {
	_, known := quadletKinds[path.Ext(file)]
	return known
}

// quadletRoot is where podman looks for an administrator's quadlets.
const quadletRoot = "/etc/containers/systemd"

// QuadletFolder is where the quadlet files of an application stand on a device:
// a folder called after it, or the one that it names, where "." is the one in
// which podman looks first.
func QuadletFolder(application, folder string) string {
	return path.Join(quadletRoot, cmp.Or(folder, application))
}

// folderForm are the names of folders; no other folder can be reached by one.
var folderForm = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]{0,99}|\.)$`)

// quadletFolderProblem says why no quadlet can work in an application's folder,
// or "".
func quadletFolderProblem(application, folder string) string {
	switch name := cmp.Or(folder, application); {
	case !folderForm.MatchString(name):
		return fmt.Sprintf("%s is no name of a folder for quadlets", quote(name))
	case name == "users":
		return "the quadlets in the folder users are for services of users, not of the device"
	case strings.HasSuffix(name, ".d"):
		return fmt.Sprintf("the folder %s is one for drop-ins", quote(name))
	}
	return ""
}

// QuadletOf is the quadlet file that a name of an application's files is of:
// itself, or the one that it is a drop-in of, as in web.container.d/10-more.conf.
func QuadletOf(name string) (file string, isDropIn bool) {
	folder, _, nested := strings.Cut(name, "/")
	if file, isDropIn = strings.CutSuffix(folder, ".d"); nested && isDropIn {
		return file, true
	}
	return name, false
}

// dropInsOf are those of the names that are drop-ins of a quadlet file, in their
// order.
func dropInsOf(file string, names []string) []string {
	var all []string
	for _, name := range names {
		if of, isDropIn := QuadletOf(name); isDropIn && of == file {
			all = append(all, name)
		}
	}
	return all
}

// QuadletTexts are those of a quadlet file and of its drop-ins, as podman reads
// them one after the other.
func QuadletTexts(file string, files map[string][]byte) [][]byte {
	texts := [][]byte{files[file]}
	for _, name := range dropInsOf(file, sortedKeys(files)) {
		texts = append(texts, files[name])
	}
	return texts
}

// QuadletProblem says why no device can have the quadlet files of an
// application, or "". Validation finds it first; an agent, whose own folders
// lie next to theirs, asks too.
func QuadletProblem(name string, app *Application) string {
	if !idForm.MatchString(name) {
		return "no application can be called " + quote(name)
	}
	if why := quadletFolderProblem(name, app.Folder); why != "" {
		return why
	}
	for _, file := range sortedKeys(app.Quadlet) {
		if why := QuadletFileProblem(file); why != "" {
			return why
		}
	}
	return ""
}

// QuadletFileProblem says why an application can have no quadlet file of a
// name, or "".
func QuadletFileProblem(file string) string {
	msg, _ := quadletName(file)
	return msg
}

// quadletName says what is wrong with the name of a quadlet file.
func quadletName(name string) (msg, hint string) {
	if file, isDropIn := QuadletOf(name); isDropIn {
		_, dropIn, _ := strings.Cut(name, "/")
		if !dropInForm.MatchString(dropIn) || path.Ext(dropIn) != ".conf" {
			return fmt.Sprintf("%s is no name for a drop-in", quote(dropIn)), "letters, digits and _.- are allowed, and .conf at the end"
		}
		name = file
	}
	kind := path.Ext(name)
	stem := strings.TrimSuffix(name, kind)
	_, known := quadletKinds[kind]
	switch {
	case !known:
		return fmt.Sprintf("%s is no file of quadlet", quote(name)), "end it with .container, .volume, .network, .pod, .kube, .image or .build; other files stand in files"
	case len(name) > maxQuadletName || !unitStem(stem):
		return fmt.Sprintf("no unit can be called after %s", quote(name)), "use letters, digits and ._- and begin with a letter or digit"
	case ownUnit(QuadletUnit(name)), standingOf(QuadletUnit(name)) != 0:
		return fmt.Sprintf("the unit %s would take the place of one that the device or the agent stands on", QuadletUnit(name)), "choose another name"
	}
	return "", ""
}

// maxQuadletName leaves room in a unit's name for what podman puts behind it.
const maxQuadletName = 200

func unitStem(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("._-", rune(c))) {
			return false
		}
	}
	return s != ""
}

// QuadletUnit is the unit that podman makes of a quadlet file with its drop-ins.
func QuadletUnit(name string, texts ...[]byte) string {
	if own := lastValue(texts, quadletSection(name), "ServiceName"); own != "" {
		return own + ".service"
	}
	kind := path.Ext(name)
	return strings.TrimSuffix(name, kind) + quadletKinds[kind] + ".service"
}

// quadletSection is the one of a quadlet file that podman reads.
func quadletSection(name string) string {
	kind := strings.TrimPrefix(path.Ext(name), ".")
	if kind == "" {
		return ""
	}
	return strings.ToUpper(kind[:1]) + kind[1:]
}
