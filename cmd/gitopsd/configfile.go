package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

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

// readConfig reads a configuration file into v, a pointer to one of the
// configuration kinds. path is what was asked for; "" = the default place, if
// there is a file. It gives the file that was read, or "".
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
		return "", withHint(usagef("the configuration file has mistakes:\n%w", errors.Join(wrong...)), "gitopsd schema %s prints every field that it may have", kindOf(v))
	}
	return path, nil
}

func kindOf(v any) schema.Kind {
	if _, ok := v.(*schema.ServeConfig); ok {
		return schema.KindServeConfig
	}
	return schema.KindAgentConfig
}

// readLimited reads a regular file of at most limit bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, nil
}
