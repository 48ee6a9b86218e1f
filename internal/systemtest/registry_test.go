//go:build system

package systemtest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
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
	listen, err := net.Listen("tcp", net.JoinHostPort(b.Outside(), "0"))
	if err != nil {
		b.f.Fatal(err)
	}
	r := &registry{t: b.f, addr: listen.Addr().String(), blobs: map[string][]byte{}, manifests: map[string]string{}}
	// podman tries TLS first, which is no request: it must not wait for one.
	server := &http.Server{Handler: r, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listen) }()
	b.f.Cleanup(func() { server.Close() })
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
	layerDigest, layerSize := blob(layer.Bytes())
	config, _ := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/app"}, "Env": []string{"VERSION=" + version}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layerDigest}},
	})
	configDigest, configSize := blob(config)
	manifest, _ := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": configDigest, "size": configSize},
		"layers": []any{map[string]any{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": layerDigest, "size": layerSize}},
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

// requests counts what was asked for.
func (r *registry) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	p := strings.TrimPrefix(req.URL.Path, "/v2/")
	if p == "" {
		return
	}
	kind, digest := "application/octet-stream", ""
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
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	if req.Method != http.MethodHead {
		_, _ = w.Write(data)
	}
}
