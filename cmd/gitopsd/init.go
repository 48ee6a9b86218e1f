package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed all:starter
var starterFiles embed.FS

func initCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a commented starter fleet repository",
		Long: `Write a small fleet repository with comments into DIR (default: here). It is
valid as it is, and its policy is switched off. Files that exist are never
overwritten: if one is in the way, nothing is written.`,
		GroupID:           groupAuthor,
		Args:              args(0, 1, "[DIR]"),
		ValidArgsFunction: completeFolder(0),
		Example: `  gitopsd init fleet
  cd fleet && git init -b main && git add . && git commit -m "a fleet"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := folder(args, 0)
			paths, err := writeStarter(dir)
			if err != nil {
				return err
			}
			for _, p := range paths {
				if _, err := fmt.Fprintln(a.out, filepath.Join(dir, p)); err != nil {
					return err
				}
			}
			at := ""
			if dir != "." {
				at = " -C " + shellWord(dir)
			}
			a.sayln("next: %s", command("gitopsd validate", dir))
			a.sayln("then: git%s init -q -b main && git%s add . && git%s commit -q -m 'a fleet'", at, at, at)
			return nil
		},
	}
}

// writeStarter writes the starter files below dir and lists them.
func writeStarter(dir string) ([]string, error) {
	if isBare(dir) {
		return nil, withHint(fmt.Errorf("cannot write a starter fleet repository into %s: it is a bare git repository", dir),
			"write it into a clone: git clone %s fleet, then gitopsd init fleet", dir)
	}
	starter, err := fs.Sub(starterFiles, "starter")
	if err != nil {
		return nil, err
	}
	var paths []string
	err = fs.WalkDir(starter, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var inTheWay []string
	for _, p := range paths {
		if _, err := os.Lstat(filepath.Join(dir, p)); err == nil {
			inTheWay = append(inTheWay, p)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cannot write a starter fleet repository into %s: %w", dir, err)
		}
	}
	if len(inTheWay) > 0 {
		return nil, withHint(fmt.Errorf("cannot write a starter fleet repository into %s: it has %s already, and nothing is overwritten", dir, strings.Join(inTheWay, ", ")),
			"name another folder: gitopsd init %s", freeName(dir))
	}
	for _, p := range paths {
		if err := copyNew(starter, p, filepath.Join(dir, filepath.FromSlash(p))); err != nil {
			return nil, fmt.Errorf("cannot write a starter fleet repository into %s: %w", dir, err)
		}
	}
	return paths, nil
}

// freeName is a folder beside dir that does not exist.
func freeName(dir string) string {
	base := filepath.Clean(dir)
	if base == "." || base == string(filepath.Separator) {
		base = "fleet"
	}
	for i := 1; ; i++ {
		name := base
		if i > 1 {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
}

// copyNew copies a file to a path where there is none.
func copyNew(from fs.FS, path, to string) error {
	data, err := fs.ReadFile(from, path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	// O_EXCL: also a file that appeared a moment ago is not overwritten.
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
