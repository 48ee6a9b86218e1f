//go:build system

package systemtest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// registry serves images of one program by the distribution protocol of OCI,
// as far as pulling goes.
type registry struct {
	t    testing.TB
	addr string

	mu        sync.Mutex
	blobs     map[string][]byte // by digest
	manifests map[string]string // digest by name:tag
	down      bool
	asked     int
	password  string // "" = nobody is asked for one
	// onHalf is called when half of a layer was sent; nil = never.
	onHalf func()
}

// app builds the program of the tests' containers, without anything that it
// would need beside it.
var app = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "gitopsd-app-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	to := filepath.Join(dir, "app")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", to, "./testdata/app")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the program of the containers: %w\n%s", err, out)
	}
	return os.ReadFile(to)
})

// newRegistry listens where a machine reaches it, and the machine trusts it.
func newRegistry(b *box) *registry {
	b.f.Helper()
	r := &registry{t: b.f, blobs: map[string][]byte{}, manifests: map[string]string{}}
	// podman tries TLS first, which is no request: it must not wait for one.
	r.addr = b.offer(&http.Server{Handler: r, ReadHeaderTimeout: time.Second})
	b.Write("/etc/containers/registries.conf.d/test.conf", fmt.Sprintf("[[registry]]\nlocation = %q\ninsecure = true\n", r.addr), 0o644)
	return r
}

// image puts an image there that differs from others by its version, and gives
// its digest.
func (r *registry) image(name, tag, version string) string {
	r.t.Helper()
	program, err := app()
	if err != nil {
		r.t.Fatal(err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, f := range []struct {
		name string
		data []byte
	}{{"app", program}, {"version", []byte(version)}} {
		err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o755, Size: int64(len(f.data)), Typeflag: tar.TypeReg})
		if err == nil {
			_, err = w.Write(f.data)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	w.Close()
	blob := func(data []byte) (string, int) {
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
		r.blobs[digest] = data
		return digest, len(data)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	layerDigest, layerLength := blob(layer.Bytes())
	config, _ := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/app"}, "Env": []string{"VERSION=" + version}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layerDigest}},
	})
	configDigest, configSize := blob(config)
	manifest, _ := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": configDigest, "size": configSize},
		"layers": []any{map[string]any{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": layerDigest, "size": layerLength}},
	})
	digest, _ := blob(manifest)
	r.manifests[name+":"+tag] = digest
	return digest
}

// set takes the registry away, or gives it back.
func (r *registry) set(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// login asks for a password, of the user edge.
func (r *registry) login(password string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.password = password
}

// atHalf calls f once, when half of a layer was sent.
func (r *registry) atHalf(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onHalf = f
}

// requests counts what was asked for.
func (r *registry) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	data, kind, digest := r.find(w, req)
	if data == nil {
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	if req.Method == http.MethodHead {
		return
	}
	r.mu.Lock()
	half := r.onHalf
	if len(data) < layerSize {
		half = nil
	} else {
		r.onHalf = nil
	}
	r.mu.Unlock()
	if half != nil {
		n, _ := w.Write(data[:len(data)/2])
		_ = http.NewResponseController(w).Flush()
		half()
		data = data[n:]
	}
	_, _ = w.Write(data)
}

// layerSize is what only layers have, in bytes.
const layerSize = 100_000

// find gives what was asked for, or answers that it does not.
func (r *registry) find(w http.ResponseWriter, req *http.Request) (data []byte, kind, digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return nil, "", ""
	}
	if user, password, _ := req.BasicAuth(); r.password != "" && (user != "edge" || password != r.password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="images"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
		return nil, "", ""
	}
	p := strings.TrimPrefix(req.URL.Path, "/v2/")
	if p == "" {
		return nil, "", ""
	}
	kind = "application/octet-stream"
	if name, ref, ok := strings.Cut(p, "/manifests/"); ok {
		kind = "application/vnd.oci.image.manifest.v1+json"
		if digest = r.manifests[name+":"+ref]; digest == "" {
			digest = ref
		}
	} else if _, ref, ok := strings.Cut(p, "/blobs/"); ok {
		digest = ref
	}
	data, ok := r.blobs[digest]
	if !ok {
		http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`, http.StatusNotFound)
		return nil, "", ""
	}
	return data, kind, digest
}
