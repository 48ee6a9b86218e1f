package agentsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"
)

// Target is where a repository is.
type Target struct {
	// URL is asked before each operation.
	URL func() (string, error)
	// Open connects to it; called again only for another URL.
	Open func(ctx context.Context, url string) (Remote, error)
}

// Fixed is the target of one repository that stays.
func Fixed(r Remote) Target {
	return Target{
		URL:  func() (string, error) { return "", nil },
		Open: func(context.Context, string) (Remote, error) { return r, nil },
	}
}

// maxURL bounds a file that holds a URL, in bytes.
const maxURL = 4 << 10

// URLFile reads a URL from a file below root, which nothing on the way to it
// may lead out of.
func URLFile(root, path string) func() (string, error) {
	return func() (string, error) {
		wrap := func(err error) error {
			var pe *os.PathError
			if errors.As(err, &pe) {
				err = pe.Err
			}
			return fmt.Errorf("read the repository's URL from %s: %w", path, err)
		}
		r, err := os.OpenRoot(root)
		if err != nil {
			return "", wrap(err)
		}
		defer r.Close()
		name := strings.TrimLeft(path, "/")
		info, err := r.Stat(name)
		if err != nil {
			return "", wrap(err)
		}
		if !info.Mode().IsRegular() {
			return "", wrap(errors.New("it is no regular file"))
		}
		f, err := r.Open(name)
		if err != nil {
			return "", wrap(err)
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, maxURL+1))
		if err != nil {
			return "", wrap(err)
		}
		url := strings.TrimSpace(string(data))
		switch {
		case len(data) > maxURL:
			return "", wrap(fmt.Errorf("it is longer than %d bytes", maxURL))
		case url == "":
			return "", wrap(errors.New("it is empty"))
		case strings.ContainsFunc(url, func(c rune) bool { return unicode.IsControl(c) || unicode.IsSpace(c) }):
			return "", wrap(errors.New("one line with one URL is wanted"))
		}
		return url, nil
	}
}

// connection is a target with the remote that it has open.
type connection struct {
	target Target
	mu     sync.Mutex
	now    *shared
}

// shared is an open remote with its users; it is closed by the last of them
// once another one has taken its place.
type shared struct {
	remote Remote
	url    string
	users  int
	stale  bool
}

// acquire gives the remote of the present URL; release must be called. Open is
// called with the lock held: it connects to nothing yet, or ends with ctx.
func (c *connection) acquire(ctx context.Context) (s *shared, release func(), err error) {
	url, err := c.target.URL()
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil || c.now.url != url {
		r, err := c.target.Open(ctx, url)
		if err != nil {
			return nil, nil, err
		}
		c.retire()
		c.now = &shared{remote: r, url: url}
	}
	s = c.now
	s.users++
	return s, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if s.users--; s.users == 0 && s.stale {
			_ = s.remote.Close() // it was only read, or has said what it wrote
		}
	}, nil
}

// retire takes the present remote out of use; mu is held.
func (c *connection) retire() {
	if c.now == nil {
		return
	}
	c.now.stale = true
	if c.now.users == 0 {
		_ = c.now.remote.Close() // as above
	}
	c.now = nil
}

func (c *connection) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retire()
}
