package schema

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Compose is an application of a compose file. Its content is that file; env
// are the variables in it, which envFile has instead where somebody keeps them
// in a file of their own.
type Compose struct {
	Body
	Env     map[string]string `json:"env,omitempty"`
	EnvFile *Content          `json:"envFile,omitempty"`
}

// The files of an application of compose, below [ComposeFolder].
const (
	ComposeFileName = "compose.yaml"
	ComposeEnvName  = ".env"
)

// composeFolder is where the agent puts compose files.
const composeFolder = "/etc/containers/compose/"

// ComposeFolder is where the compose file of an application stands.
func ComposeFolder(application string) string { return composeFolder + application }

// ComposeProblem says why no device can have an application of compose of that
// name, or "". Validation finds it first; an agent, which names files, units and
// containers after it, asks too.
func ComposeProblem(application string) string {
	if !idForm.MatchString(application) {
		return "no project can be called " + quote(application)
	}
	return ""
}

// ComposeUnit is the unit that runs an application of compose.
func ComposeUnit(application string) string { return "compose-" + application + ".service" }

// ComposeBoot is the drop-in that has the unit start with the device: a plain
// file, so that it comes and goes as all files do.
func ComposeBoot(application string) string {
	return unitFolder + "multi-user.target.d/compose-" + application + ".conf"
}

// ComposePaths lists all paths that an application of compose may have.
func ComposePaths(application string) []string {
	folder := ComposeFolder(application)
	return []string{
		folder + "/" + ComposeFileName, folder + "/" + ComposeEnvName,
		unitFolder + ComposeUnit(application), ComposeBoot(application),
	}
}

// ComposeEnvFile writes variables as the file that compose reads them from.
func ComposeEnvFile(env map[string]string) []byte {
	var b strings.Builder
	for _, name := range sortedKeys(env) {
		quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(env[name])
		fmt.Fprintf(&b, "%s='%s'\n", name, quoted)
	}
	return []byte(b.String())
}

// ComposeEnv reads such a file, as far as images need it: one assignment in
// each line. What refers to other variables is left out.
func ComposeEnv(text []byte) map[string]string {
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		name = strings.TrimSpace(strings.TrimPrefix(name, "export "))
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		value = strings.TrimSpace(value)
		switch {
		case len(value) > 1 && value[0] == '\'' && value[len(value)-1] == '\'':
			value = strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(value[1 : len(value)-1])
		case len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"':
			value = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(value[1 : len(value)-1])
		default:
			value, _, _ = strings.Cut(value, " #")
			value = strings.TrimSpace(value)
		}
		if delete(env, name); !strings.Contains(value, "${") {
			env[name] = value
		}
	}
	return env
}

// composeVariable says whether a value comes out of such a file as it went in:
// the reader of the tool looks for variables in every value, and takes a quote
// for the end behind any backslash.
func composeVariable(value string) bool {
	return !strings.Contains(value, "${") && !strings.Contains(value, `\'`) && !strings.HasSuffix(value, `\`)
}

// ComposeService is a service of a compose file.
type ComposeService struct {
	Name  string
	Image string // with its variables; "" = it needs none
	Line  int    // of the image
	// Optional: it may have no container, for it has profiles or no replicas.
	Optional bool
	// Ends: it has done what it is for when it has ended well.
	Ends bool
	// Restarts: podman starts it again when it has ended.
	Restarts bool
	Grace    time.Duration // to end in, before it is killed; 0 = podman's default
}

// ComposeFile is what has to be known of a compose file beside the tool that
// runs it.
type ComposeFile struct {
	Services []ComposeService // by name
	shared   []composeShared
	// DotEnv is the line that needs the variables as a file; 0 = none.
	DotEnv int
}

// ComposeSlip is something because of which no device can run a compose file.
type ComposeSlip struct {
	Line, Column  int
	Message, Hint string
}

// Images lists what podman pulls for the services, each once. Left out are
// images with variables that env does not have.
func (f *ComposeFile) Images(env map[string]string) []string {
	var images []string
	for _, s := range f.Services {
		image, missing := expandCompose(s.Image, env)
		if image != "" && len(missing) == 0 && isImage(image) && !slices.Contains(images, image) {
			images = append(images, image)
		}
	}
	return images
}

// composeShared is a network or a volume of a compose file.
type composeShared struct {
	name     string // in podman, with its variables
	external bool   // another makes it
}

// Shared gives the names that the networks and volumes of the file have in
// podman, where other projects may use them: those that the project makes, and
// those that have to be there when it starts.
func (f *ComposeFile) Shared(env map[string]string) (made, needed []string) {
	for _, s := range f.shared {
		name, _ := expandCompose(s.name, env)
		if s.external {
			needed = append(needed, name)
		} else {
			made = append(made, name)
		}
	}
	return made, needed
}

// isImage says whether podman can take a text for nothing but an image.
func isImage(text string) bool {
	return !strings.HasPrefix(text, "-") && !strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || unicode.IsControl(r) })
}

// expandCompose puts values in the place of variables, as podman-compose does:
// $name, ${name}, ${name:-default} and ${name:?message}; $$ is a dollar sign.
func expandCompose(text string, env map[string]string) (out string, missing []string) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String(), missing
		}
		if rest, escaped := strings.CutPrefix(after, "$"); escaped {
			b.WriteByte('$')
			text = rest
			continue
		}
		rest, braced := strings.CutPrefix(after, "{")
		n := variableName(rest)
		name, instead := rest[:n], ""
		text = rest[n:]
		if braced {
			var closed bool
			if instead, text, closed = strings.Cut(text, "}"); !closed {
				n = 0
			}
		}
		if n == 0 {
			b.WriteByte('$') // no variable begins here
			text = after
			continue
		}
		value, set := env[name]
		orEmpty, hasColon := strings.CutPrefix(instead, ":")
		alternative, hasAlternative := strings.CutPrefix(orEmpty, "-")
		switch {
		case set && (value != "" || !hasColon):
			b.WriteString(value)
		case hasAlternative:
			b.WriteString(alternative)
		default:
			missing = append(missing, name)
		}
	}
}

func variableName(s string) int {
	n := 0
	for n < len(s) && (isWord(s[n]) && s[n] != '/' && s[n] != '.' && s[n] != '$') && (n > 0 || s[n] < '0' || s[n] > '9') {
		n++
	}
	return n
}
