//go:build system

package agreement

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// answerLimit is what the server may take for all documents, on a machine
// under load.
const answerLimit = 5 * time.Minute

// editor is the part of an editor that asks a language server about documents
// (Language Server Protocol 3.17).
type editor struct {
	t    *testing.T
	in   io.Writer
	said chan message
}

type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
}

// diagnostic is what the server says about a place; lines count from 0.
type diagnostic struct {
	Message string
	Range   struct{ Start struct{ Line, Character int } }
}

// openEditor starts the pinned server; it ends with the test.
func openEditor(t *testing.T) *editor {
	t.Helper()
	server, err := filepath.Abs(yamlServer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(server); err != nil {
		missing(t, yamlServer)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		missing(t, "node (Debian: nodejs)")
	}
	cmd := exec.Command(node, server, "--stdio")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e := &editor{t: t, in: in, said: make(chan message, 10_000)}
	go e.listen(out)
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	e.say(map[string]any{"id": 1, "method": "initialize", "params": map[string]any{"processId": os.Getpid(), "rootUri": nil,
		"capabilities": map[string]any{"workspace": map[string]any{"configuration": true}, "textDocument": map[string]any{"publishDiagnostics": map[string]any{}}}}})
	for m := range e.wait() {
		if string(m.ID) == "1" && m.Method == "" {
			break
		}
	}
	e.say(map[string]any{"method": "initialized", "params": map[string]any{}})
	return e
}

func (e *editor) listen(out io.Reader) {
	defer close(e.said)
	r := textproto.NewReader(bufio.NewReader(out))
	for {
		head, err := r.ReadMIMEHeader()
		if err != nil {
			return
		}
		size, err := strconv.Atoi(head.Get("Content-Length"))
		if err != nil {
			return
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(r.R, body); err != nil {
			return
		}
		var m message
		if json.Unmarshal(body, &m) == nil {
			e.said <- m
		}
	}
}

func (e *editor) say(m map[string]any) {
	e.t.Helper()
	m["jsonrpc"] = "2.0"
	body, err := json.Marshal(m)
	if err == nil {
		_, err = fmt.Fprintf(e.in, "Content-Length: %d\r\n\r\n%s", len(body), body)
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// wait gives what the server says, and answers what it asks; it fails the test
// where nothing is said for too long.
func (e *editor) wait() func(yield func(message) bool) {
	settings := map[string]any{"validate": true, "schemaStore": map[string]any{"enable": false}}
	return func(yield func(message) bool) {
		limit := time.After(answerLimit)
		for {
			select {
			case m, open := <-e.said:
				if !open {
					e.t.Fatal("the language server has ended")
				}
				if m.Method == "workspace/configuration" {
					var asked struct{ Items []struct{ Section string } }
					_ = json.Unmarshal(m.Params, &asked)
					answers := []any{}
					for _, item := range asked.Items {
						if item.Section == "yaml" {
							answers = append(answers, settings)
						} else {
							answers = append(answers, map[string]any{})
						}
					}
					e.say(map[string]any{"id": m.ID, "result": answers})
				} else if m.Method != "" && m.ID != nil {
					e.say(map[string]any{"id": m.ID, "result": nil})
				}
				if !yield(m) {
					return
				}
			case <-limit:
				e.t.Fatalf("the language server says nothing for %s", answerLimit)
			}
		}
	}
}

// look opens documents, by their paths, and gives what the server says about
// each.
func (e *editor) look(documents map[string]string) map[string][]diagnostic {
	e.t.Helper()
	for file, text := range documents {
		e.say(map[string]any{"method": "textDocument/didOpen", "params": map[string]any{"textDocument": map[string]any{
			"uri": uri(file), "languageId": "yaml", "version": 1, "text": text}}})
	}
	said := map[string][]diagnostic{}
	for m := range e.wait() {
		if m.Method != "textDocument/publishDiagnostics" {
			continue
		}
		var about struct {
			URI         string
			Diagnostics []diagnostic
		}
		if err := json.Unmarshal(m.Params, &about); err != nil {
			e.t.Fatal(err)
		}
		if said[about.URI] = about.Diagnostics; len(said) == len(documents) {
			break
		}
	}
	byFile := map[string][]diagnostic{}
	for file := range documents {
		found, ok := said[uri(file)]
		if !ok {
			e.t.Errorf("the language server says nothing of %s", file)
		}
		byFile[file] = found
	}
	return byFile
}

func uri(file string) string { return "file://" + filepath.ToSlash(file) }
