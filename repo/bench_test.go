package repo_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
)

// benchFiles is the size of the fleet that changes are measured against.
const benchFiles = 10_000

func benchPath(i int) string { return fmt.Sprintf("devices/site-%03d/dev-%05d.yaml", i%200, i) }

func benchDoc(i, turn int) string {
	return fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: DeviceStatus\nmetadata: {name: dev-%05d}\nturn: %d\n", i, turn) + strings.Repeat("line: of a status document\n", 18)
}

func benchPlace(b *testing.B) place {
	p := overHTTP(b)
	files := map[string]string{}
	for i := range benchFiles {
		files[benchPath(i)] = benchDoc(i, 0)
	}
	seed(b, p, "status", files)
	gitserver.Git(b, p.bare, "repack", "-adq")
	return p
}

// BenchmarkPublish commits and pushes a change of 1 and of 100 files in a
// tree of 10,000 over http; stock git does the same beside it, with a blobless
// plumbing commit (update-index, write-tree, commit-tree, push).
func BenchmarkPublish(b *testing.B) {
	ctx := context.Background()
	for _, changed := range []int{1, 100} {
		b.Run(fmt.Sprintf("files=%d/by=gitopsd", changed), func(b *testing.B) {
			p := benchPlace(b)
			r := open(b, p)
			const ref = "refs/heads/status"
			refs := must[map[string]string](b, "refs")(r.Refs(ctx, ref))
			tip := refs[ref]
			if err := r.Fetch(ctx, ref, tip, false); err != nil {
				b.Fatal(err)
			}
			p.srv.ResetTraffic()
			b.ResetTimer()
			for n := range b.N {
				changes := map[string]string{}
				for i := range changed {
					changes[benchPath(i*97)] = must[string](b, "put")(r.PutBlob(ctx, []byte(benchDoc(i, n+1))))
				}
				next := must[string](b, "commit")(r.Commit(ctx, tip, changes, time.Unix(1e9+int64(n), 0), "sweep"))
				if err := moveLead(r, ref, tip, next); err != nil {
					b.Fatal(err)
				}
				tip = next
			}
			b.StopTimer()
			_, in, _ := p.srv.Traffic()
			b.ReportMetric(float64(in)/float64(b.N), "sent-B/op")
			fsckBench(b, p.bare)
		})
		b.Run(fmt.Sprintf("files=%d/by=git", changed), func(b *testing.B) {
			p := benchPlace(b)
			work := filepath.Join(b.TempDir(), "work.git")
			gitserver.Git(b, p.bare, "clone", "-q", "--bare", "-b", "status", p.url, work)
			gitserver.Git(b, work, "read-tree", "status")
			p.srv.ResetTraffic()
			b.ResetTimer()
			for n := range b.N {
				var index strings.Builder
				for i := range changed {
					doc := filepath.Join(b.TempDir(), "doc")
					if err := os.WriteFile(doc, []byte(benchDoc(i, n+1)), 0o644); err != nil {
						b.Fatal(err)
					}
					fmt.Fprintf(&index, "%s\n", doc)
				}
				hashes := strings.Fields(gitIn(b, work, index.String(), "hash-object", "-w", "--stdin-paths"))
				index.Reset()
				for i, h := range hashes {
					fmt.Fprintf(&index, "100644 %s\t%s\n", h, benchPath(i*97))
				}
				gitIn(b, work, index.String(), "update-index", "--index-info")
				tree := gitserver.Git(b, work, "write-tree")
				commit := gitserver.Git(b, work, "commit-tree", "-p", "status", "-m", "sweep", tree)
				gitserver.Git(b, work, "update-ref", "refs/heads/status", commit)
				gitserver.Git(b, work, "push", "-q", p.url, "status:status")
			}
			b.StopTimer()
			_, in, _ := p.srv.Traffic()
			b.ReportMetric(float64(in)/float64(b.N), "sent-B/op")
		})
	}
}

func fsckBench(b *testing.B, bare string) {
	if out, err := gitserver.TryGit(bare, "fsck", "--strict"); err != nil {
		b.Fatalf("git fsck: %v\n%s", err, out)
	}
}

func gitIn(b *testing.B, dir, stdin string, args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), gitserver.Environ()...)
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

// BenchmarkIdlePoll is a device that finds nothing new, in a repository with
// 10 and with 10,000 refs; git ls-remote beside it.
func BenchmarkIdlePoll(b *testing.B) {
	ctx := context.Background()
	for _, n := range []int{10, 10_000} {
		p := overHTTP(b)
		r := open(b, p)
		c := orphan(b, r, "x")
		if err := moveLead(r, "refs/gitopsd/devices/mine", "", c); err != nil {
			b.Fatal(err)
		}
		fillRefs(b, p.bare, c, n)
		const ref = "refs/gitopsd/devices/dev-000007"
		b.Run(fmt.Sprintf("refs=%d/by=gitopsd", n), func(b *testing.B) {
			d := openDevice(b, p)
			if _, _, err := d.Read(ctx, ref, c, 1000); err != nil {
				b.Fatal(err)
			}
			p.srv.ResetTraffic()
			b.ResetTimer()
			for range b.N {
				if _, _, err := d.Read(ctx, ref, c, 1000); err != nil {
					b.Fatal(err)
				}
			}
			_, in, out := p.srv.Traffic()
			b.ReportMetric(float64(in+out)/float64(b.N), "body-B/op")
		})
		b.Run(fmt.Sprintf("refs=%d/by=git", n), func(b *testing.B) {
			p.srv.ResetTraffic()
			for range b.N {
				gitserver.Git(b, p.bare, "ls-remote", p.url, ref)
			}
			_, in, out := p.srv.Traffic()
			b.ReportMetric(float64(in+out)/float64(b.N), "body-B/op")
		})
	}
}

// BenchmarkWalk reads names and hashes, then every blob, of 10,000 files;
// git cat-file beside it.
func BenchmarkWalk(b *testing.B) {
	ctx := context.Background()
	p := benchPlace(b)
	r, err := repo.Open(repo.Config{URL: p.bare})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	tip := gitserver.Git(b, p.bare, "rev-parse", "status")
	walk := func(b *testing.B, each func(blob string) error) {
		for range b.N {
			n := 0
			err := r.Walk(ctx, tip, func(_, blob string, _ uint32) error { n++; return each(blob) })
			if err != nil || n != benchFiles {
				b.Fatalf("%d files, %v", n, err)
			}
		}
	}
	b.Run("names/by=gitopsd", func(b *testing.B) { walk(b, func(string) error { return nil }) })
	b.Run("blobs/by=gitopsd", func(b *testing.B) {
		walk(b, func(blob string) error { _, err := r.Blob(ctx, blob, 0); return err })
	})
	b.Run("blobs/by=git", func(b *testing.B) {
		for range b.N {
			list := gitserver.Git(b, p.bare, "ls-tree", "-r", "--format=%(objectname)", tip)
			gitIn(b, p.bare, list+"\n", "cat-file", "--batch")
		}
	})
}
