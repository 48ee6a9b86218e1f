package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// TestPicturesAreNew looks whether the pictures show the comments as they are,
// and the documentation shows the pictures.
func TestPicturesAreNew(t *testing.T) {
	want, err := manifest(filepath.Join(root, comments))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, pictures, manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("the comments have changed since their pictures were made: make pictures\n%s\nwant\n%s", got, want)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/howto/preview-a-change.md"))
	if err != nil {
		t.Fatal(err)
	}
	const largest = 150_000 // bytes, so that a clone stays small
	lines := strings.Fields(want)
	for i := 1; i < len(lines); i += 2 {
		picture := strings.TrimSuffix(lines[i], ".md") + ".png"
		info, err := os.Stat(filepath.Join(root, pictures, picture))
		if err != nil {
			t.Error(err)
		} else if info.Size() > largest {
			t.Errorf("%s has %d bytes, more than %d", picture, info.Size(), largest)
		}
		// With a text for those who do not see it.
		if shown := regexp.MustCompile(`!\[[^\]]{40,}\]\(pictures/` + regexp.QuoteMeta(picture) + `\)`); !shown.Match(page) {
			t.Errorf("the page does not show %s, or does not describe it", picture)
		}
	}
}
