package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// build says what this program was made from.
type build struct {
	Version  string
	Revision string
	Time     string
	Modified bool
}

// develVersion is the version of a build that nothing named; it is no
// semantic version on purpose, so that it never becomes a target.
const develVersion = "devel"

func readBuild() build {
	b := build{Version: develVersion}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			b.Version = v
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.time":
				b.Time = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	if stampedVersion != "" {
		b.Version = stampedVersion
	}
	if stampedRevision != "" {
		b.Revision, b.Modified = stampedRevision, stampedModified != ""
	}
	return b
}

// What the Makefile stamps with -ldflags -X, since a build may be told to
// leave version control alone. The version is that of a tag, and empty
// without one.
var stampedVersion, stampedRevision, stampedModified string

// text is a build on one line.
func (b build) text() string {
	text := fmt.Sprintf("gitopsd %s %s %s/%s", b.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if b.Revision != "" {
		text += " " + view.Short(b.Revision)
		if b.Modified {
			text += ", modified"
		}
	}
	return text + "\n"
}

// versionDocument is the JSON of gitopsd version.
type versionDocument struct {
	schema.TypeMeta
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionCommand(a *app) *cobra.Command {
	output := newOutput("text", "json")
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		GroupID: groupOther,
		Args:    args(0, 0, ""),
		Example: `  gitopsd version
  gitopsd version -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			doc := versionDocument{
				TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "Version"},
				Version:  a.build.Version, Revision: a.build.Revision, Time: a.build.Time, Modified: a.build.Modified,
				Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
			}
			if output.value == "json" {
				return writeJSON(a.out, doc)
			}
			_, err := io.WriteString(a.out, a.build.text())
			return err
		},
	}
	output.bind(cmd)
	return cmd
}
