//go:build system

package systemtest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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
	// onHalf is called when half of a layer was sent; nil = never. ofLayer is
	// which one it is; "" = the next.
	onHalf  func()
	ofLayer string
	sent    map[string]int // how often a layer was asked for, by digest
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
	r := &registry{t: b.f, blobs: map[string][]byte{}, manifests: map[string]string{}, sent: map[string]int{}}
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
	digest, _ := r.put(name, tag, version, map[string][]byte{"app": program, "version": []byte(version)})
	return digest
}

// put makes an image of layers, each of files by name, and gives its digest and
// theirs.
func (r *registry) put(name, tag, version string, layers ...map[string][]byte) (digest string, ofLayers []string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	blob := func(data []byte) string {
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
		r.blobs[digest] = data
		return digest
	}
	var described []any
	for _, files := range layers {
		var layer bytes.Buffer
		w := tar.NewWriter(&layer)
		for _, file := range slices.Sorted(maps.Keys(files)) {
			err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o755, Size: int64(len(files[file])), Typeflag: tar.TypeReg})
			if err == nil {
				_, err = w.Write(files[file])
			}
			if err != nil {
				r.t.Fatal(err)
			}
		}
		if files["app"] != nil { // podman-compose has every check run by a shell
			if err := w.WriteHeader(&tar.Header{Name: "bin/sh", Linkname: "/app", Typeflag: tar.TypeSymlink}); err != nil {
				r.t.Fatal(err)
			}
		}
		w.Close()
		digest := blob(layer.Bytes())
		ofLayers = append(ofLayers, digest)
		described = append(described, map[string]any{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest, "size": layer.Len()})
	}
	config, _ := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/app"}, "Env": []string{"VERSION=" + version}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": ofLayers},
	})
	manifest, _ := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": blob(config), "size": len(config)},
		"layers": described,
	})
	digest = blob(manifest)
	r.manifests[name+":"+tag] = digest
	return digest, ofLayers
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
	r.onHalf, r.ofLayer = f, ""
}

// atHalfOf is the same for one layer. f may panic with [http.ErrAbortHandler],
// which cuts the connection.
func (r *registry) atHalfOf(layer string, f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onHalf, r.ofLayer = f, layer
}

// asks counts how often a layer was asked for.
func (r *registry) asks(layer string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent[layer]
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
	r.sent[digest]++
	if len(data) < layerSize || r.ofLayer != "" && r.ofLayer != digest {
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
