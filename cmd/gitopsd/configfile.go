package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/schema"
)

// flagConfig names the configuration file; it has no place in one.
const flagConfig = "config"

// Default places of the configuration files, read if they exist.
const (
	defaultServeConfig = "/etc/gitopsd/serve.yaml"
	defaultAgentConfig = "/etc/gitopsd/agent.yaml"
)

// configLimit is far above any real configuration: a wrong path such as a
// disk image must not be read whole.
const configLimit = 1 << 20

// configured reads the configuration of one long-running command.
type configured[S any] struct {
	settings *settings[S]
	config   string // file that --config names
	standard string // file that is read where none is named
}

func (c *configured[S]) bind(cmd *cobra.Command) {
	c.settings.bind(cmd)
	cmd.Flags().Var((*nonEmpty)(&c.config), flagConfig, "configuration `file` (default "+c.standard+" if it exists)")
}

// read fills spec, which lies in doc, from the file, the environment and the
// flags. It gives where each setting came from, and the file.
func (c *configured[S]) read(cmd *cobra.Command, env environment, doc any, spec *S) ([]resolved, string, error) {
	path := c.config
	if path == "" {
		path = env[variable(flagConfig)]
	}
	file, err := readConfig(path, c.standard, doc)
	if err != nil {
		return nil, "", err
	}
	list, err := c.settings.resolve(cmd, env, func(string) string { return file }, spec)
	return list, file, err
}

// readConfig reads a configuration file into v. path is what was asked for;
// "" = the standard place, if there is a file. It gives the file that was read,
// or "".
func readConfig(path, standard string, v any) (string, error) {
	asked := path != ""
	if !asked {
		path = standard
	}
	data, err := readLimited(path, configLimit)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !asked:
		return "", nil
	case errors.Is(err, fs.ErrNotExist):
		return "", withHint(usagef("cannot read the configuration file: %w", err), "check --config; without it %s is read if it exists", standard)
	case err != nil:
		return "", usagef("cannot read the configuration file: %w", err)
	}
	problems := schema.Decode(path, data, v)
	var wrong []error
	for _, p := range problems {
		if p.Severity == schema.SeverityError {
			wrong = append(wrong, errors.New(problemText(p)))
		}
	}
	if len(wrong) > 0 {
		return "", withHint(usagef("the configuration file has mistakes:\n%w", errors.Join(wrong...)), "gitopsd schema %s prints every field that it may have", schema.KindServeConfig)
	}
	return path, nil
}

// readLimited reads a file of at most limit bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, path, limit)
}

// readAll reads at most limit bytes: a part of something is taken for none of
// it.
func readAll(from io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return data, nil
}
