package files

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// protectedTrees are never touched, whatever a spec says.
var protectedTrees = []struct{ path, why string }{
	{"/proc", "it belongs to the kernel"},
	{"/sys", "it belongs to the kernel"},
	{"/dev", "it belongs to the kernel"},
	{"/run/gitopsd", "it is how others speak to the agent"},
	{"/etc/gitopsd", "it is the agent's own configuration"},
	{"/usr/lib/gitopsd", "it is the agent's own configuration"},
	{"/var/lib/gitopsd", "it is the agent's own state"},
}

// isProtected says why no spec may touch a path, or "".
func (c *Controller) isProtected(p string) string {
	for _, t := range protectedTrees {
		if within(p, t.path) {
			return t.why
		}
	}
	if within(p, c.state) {
		return "it is the agent's own state"
	}
	needed := slices.Concat(c.protected, c.linked)
	for _, own := range needed {
		if within(p, own) {
			return "the agent needs it"
		}
	}
	if why := schema.UnitFileProblem(p, needed...); why != "" {
		return why
	}
	if within(p, "/usr") && c.imageBased() {
		return "/usr belongs to the operating system image"
	}
	return ""
}

// followProtected finds anew what protected paths lead to: a key may be a link, and
// so may its folder, such as the /etc/ssh of a data partition.
func (c *Controller) followProtected() {
	c.linked = nil
	for _, p := range append([]string{c.state, "/etc/gitopsd"}, c.protected...) {
		if real, err := c.root.Follow(p); err == nil && real != p {
			c.linked = append(c.linked, real)
		}
	}
}

// coversProtected says whether a file at p would be in the way of a protected
// path.
func (c *Controller) coversProtected(p string) bool {
	if within(c.state, p) {
		return true
	}
	for _, t := range protectedTrees {
		if within(t.path, p) {
			return true
		}
	}
	return false
}

func within(p, tree string) bool {
	return p == tree || strings.HasPrefix(p, strings.TrimSuffix(tree, "/")+"/")
}

// imageBased says whether /usr comes as an image: it was booted by ostree, or
// /usr is mounted read-only.
func (c *Controller) imageBased() bool {
	if _, err := c.root.Lstat("/run/ostree-booted"); err == nil {
		return true
	}
	host, err := c.root.HostPath("/usr")
	if err != nil {
		return false
	}
	return mountedReadOnly(filepath.Clean(host))
}
