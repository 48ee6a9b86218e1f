package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// unlike says how a container differs from what podman-compose would make.
func (c *Controller) unlike(ctx context.Context, one *shown, would string) (string, error) {
	out, err := c.podman(ctx, podmanLimit, "container", "inspect", "--format", inspected, one.id)
	if err != nil {
		return "", speaking(ctx, fmt.Errorf("the container %s: %s", one.name, said(err)))
	}
	const fields = 3
	f := strings.SplitN(out, " ", fields)
	var made []string
	if len(f) < fields || json.Unmarshal([]byte(f[2]), &made) != nil {
		return fmt.Sprintf("podman does not say how the container %s was made", one.name), nil
	}
	if run, ok := asTold(made); !ok || !strings.Contains(would, aRun+run+"\n") {
		return fmt.Sprintf("podman-compose would make the container %s in another way%s", one.name, unproven(made, would)), nil
	}
	id, err := c.imageID(ctx, f[1])
	if err != nil {
		return "", speaking(ctx, err)
	}
	if id != f[0] {
		return fmt.Sprintf("the container %s is of an image that %s was before", one.name, f[1]), nil
	}
	return "", nil
}

// inspected is what podman is asked for of a container.
const inspected = `{{.Image}} {{.ImageName}} {{json .Config.CreateCommand}}`

// aRun begins a command of podman where podman-compose tells what it would do.
const aRun = "true run "

// wouldMake has podman-compose tell the commands that it would make containers
// with. Even when it is to do nothing it makes volumes and networks, for which it
// is given another program, and folders, for which it is let write nowhere.
func (c *Controller) wouldMake(ctx context.Context, w *want) (string, error) {
	out, _, err := c.compose(ctx, w, func(host string) []string {
		return []string{
			"sh", "-c", `exec "$@" 2>&1`, "sh", // it tells that as its errors
			"systemd-run", "--quiet", "--pipe", "--wait", "--collect", "--working-directory=" + host,
			"--property=ProtectSystem=strict", fmt.Sprintf("--property=RuntimeMaxSec=%d", composeLimit),
			"podman-compose", "--verbose", "--dry-run", "--podman-path=true", "--project-name=" + w.name,
			"--file=" + path.Join(host, schema.ComposeFileName), "up", "--detach", "--no-build",
		}
	})
	return inOrder(placed.ReplaceAllString(out, "")) + "\n", err
}

// placed is a label that says where the compose file is.
var placed = regexp.MustCompile(` --label com\.docker\.compose\.project\.(?:working_dir|config_files)=\S*`)

// required are the containers that one needs. podman-compose tells them in
// another order each time.
var required = regexp.MustCompile(` --requires=\S*`)

func inOrder(run string) string {
	return required.ReplaceAllStringFunc(run, func(option string) string {
		option, list, _ := strings.Cut(option, "=")
		names := strings.Split(list, ",")
		slices.Sort(names)
		return option + "=" + strings.Join(names, ",")
	})
}

// asTold is the command that has made a container as podman-compose tells
// it for one that runs in the background. It is not where the container has a
// variable from the environment of who made it.
func asTold(made []string) (run string, ok bool) {
	const options = 3 // behind podman, its command, and the container's name
	if len(made) < options {
		return "", false
	}
	out, rest := []string{made[2]}, made[options:]
	switch made[1] {
	case "create": // it was to run in the foreground, or to be started later
		out = append(out, "-d")
	case "run":
	default:
		return "", false
	}
	for i := 0; i < len(rest); i++ {
		if i+1 < len(rest) && rest[i] == "--label" && placed.MatchString(" --label "+rest[i+1]) {
			i++
			continue
		}
		if i+1 < len(rest) && rest[i] == "-e" && !strings.Contains(rest[i+1], "=") {
			return "", false
		}
		out = append(out, rest[i])
	}
	return inOrder(strings.Join(out, " ")), true
}

// unprovenTold is how many variables are named: each may be as long as a line.
const unprovenTold = 3

// variable is the name of one, which nothing else is told for.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// unproven names the variables that the command which has made a container has
// otherwise than the one that podman-compose tells, or without a value. Values
// are not told: secrets may be among them.
func unproven(made []string, would string) string {
	const name = 2 // where it stands, behind podman and its command
	if len(made) <= name {
		return ""
	}
	_, its, found := strings.Cut(would, aRun+made[name]+" ")
	if !found {
		return ""
	}
	its, _, _ = strings.Cut(its, aRun)
	var names []string
	for i, option := range made[:len(made)-1] {
		key, _, valued := strings.Cut(made[i+1], "=")
		if option == "-e" && variable.MatchString(key) && !slices.Contains(names, key) &&
			!(valued && strings.Contains(its, " -e "+made[i+1]+" ")) {
			names = append(names, key)
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case len(names) == 1:
		return ", and its variable " + names[0] + " is not proven to be the same"
	case len(names) > unprovenTold:
		names = append(names[:unprovenTold], "…")
	}
	return ", and its variables " + strings.Join(names, ", ") + " are not proven to be the same"
}
