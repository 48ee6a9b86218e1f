package github

import (
	"bytes"
	"io"
	"net/http"
	"sync"
)

const (
	// maxCached bounds one answer that is kept, in bytes, and maxCache all of
	// them: the open pull requests of a busy repository.
	maxCached = 1 << 20
	maxCache  = 8 << 20
)

// cache asks again with what the server said last: an answer that has not
// changed costs nothing of the limit.
type cache struct {
	next http.RoundTripper

	mu   sync.Mutex
	kept map[string]*cached
	size int
	age  int64 // of the last use
}

type cached struct {
	tag    string
	header http.Header
	body   []byte
	used   int64
}

func newCache(next http.RoundTripper) *cache { return &cache{next: next, kept: map[string]*cached{}} }

// RoundTrip sends one request.
func (c *cache) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		return c.next.RoundTrip(req)
	}
	key := req.URL.String()
	c.mu.Lock()
	old := c.kept[key]
	if old != nil {
		c.age++
		old.used = c.age
		req = req.Clone(req.Context())
		req.Header.Set("If-None-Match", old.tag)
	}
	c.mu.Unlock()
	r, err := c.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if r.StatusCode == http.StatusNotModified && old != nil {
		r.StatusCode, r.Status = http.StatusOK, "200 OK"
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(old.body)), int64(len(old.body))
		for _, name := range []string{"Link", "Content-Type"} {
			if value := old.header.Get(name); value != "" {
				r.Header.Set(name, value)
			}
		}
		return r, nil
	}
	tag := r.Header.Get("Etag")
	if r.StatusCode != http.StatusOK || tag == "" || r.ContentLength > maxCached {
		c.drop(key)
		return r, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.keep(key, &cached{tag: tag, header: r.Header, body: body})
	return r, nil
}

func (c *cache) drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key)
}

func (c *cache) remove(key string) {
	if old := c.kept[key]; old != nil {
		c.size -= len(old.body)
		delete(c.kept, key)
	}
}

// keep makes room by forgetting what was not asked for longest.
func (c *cache) keep(key string, entry *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key)
	c.age++
	entry.used = c.age
	c.kept[key] = entry
	for c.size += len(entry.body); c.size > maxCache; {
		oldest := ""
		for k, e := range c.kept {
			if oldest == "" || e.used < c.kept[oldest].used {
				oldest = k
			}
		}
		c.remove(oldest)
	}
}
