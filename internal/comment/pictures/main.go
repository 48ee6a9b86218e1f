// Command pictures makes the pictures of comments that the documentation
// shows: the comments of the tests, as GitHub would about show them, drawn by
// Chromium. Run it by make pictures, from the root of the project, after the
// comments have changed; a test says so.
//
// It is no part of gitopsd, and uses no network.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
)

const (
	comments = "internal/comment/testdata" // seen from the root of the project
	pictures = "docs/howto/pictures"
	width    = 860   // pixels, about what a comment has on a desktop
	height   = 2_400 // pixels, more than any of them needs: the rest is cut off
	mode     = 0o644
)

//go:embed comment.css
var style string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	browser, err := find("chromium", "chromium-browser", "google-chrome")
	if err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(comments, "*.md"))
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("no comments in %s (run it from the root of the project): %w", comments, err)
	}
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return err
	}
	for _, path := range paths {
		markdown, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		page, err := htmlPage(markdown)
		if err != nil {
			return fmt.Errorf("cannot make a page of %s: %w", path, err)
		}
		shot, err := screenshot(ctx, browser, page)
		if err != nil {
			return fmt.Errorf("cannot draw %s: %w", path, err)
		}
		small, err := shrink(shot)
		if err != nil {
			return fmt.Errorf("cannot read the picture of %s: %w", path, err)
		}
		picture := filepath.Join(pictures, strings.TrimSuffix(filepath.Base(path), ".md")+".png")
		if err := renameio.WriteFile(picture, small, mode); err != nil {
			return err
		}
		fmt.Printf("%s: %d bytes\n", picture, len(small))
	}
	text, err := manifest(comments)
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(pictures, manifestFile), []byte(text), mode)
}

func find(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium (Debian and Ubuntu: apt-get install chromium)")
}

func htmlPage(markdown []byte) ([]byte, error) {
	var body bytes.Buffer
	convert := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	if err := convert.Convert(markdown, &body); err != nil {
		return nil, err
	}
	return []byte("<!DOCTYPE html><meta charset=utf-8><style>" + style + "</style><article>" + body.String() + "</article>"), nil
}

// screenshot gives a picture of a page as a PNG.
func screenshot(ctx context.Context, browser string, page []byte) (shot []byte, err error) {
	dir, err := os.MkdirTemp("", "pictures-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	source, out := filepath.Join(dir, "page.html"), filepath.Join(dir, "page.png")
	if err := os.WriteFile(source, page, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, browser,
		"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-lcd-text", // grey edges of letters need few colours
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
		"--user-data-dir="+filepath.Join(dir, "profile"),
		fmt.Sprintf("--window-size=%d,%d", width, height), "--screenshot="+out, "file://"+source)
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", browser, err, said)
	}
	return os.ReadFile(out)
}
