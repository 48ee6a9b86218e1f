package apps

import (
	"net"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/schema"
)

// What answers is a part of the fleet's content: what is told of it is short,
// and holds nothing that lets somebody in.
func TestHostileAnswers(t *testing.T) {
	const path = "/health?token=ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	for name, c := range map[string]struct{ sent, want string }{
		"secret in the answer": {"500 no\r\nContent-Length: 28\r\n\r\nDB_PASSWORD=hunter2hunter2 x", "500 Internal Server Error instead of 200: DB_PASSWORD=[removed] x"},
		"long status":          {"500 " + strings.Repeat("x", 1<<19) + "\r\nContent-Length: 0\r\n\r\n", "answers 500 Internal Server Error instead of 200:"},
		"unknown status":       {"599 hunter2hunter2\r\nContent-Length: 0\r\n\r\n", "answers 599 instead of 200:"},
		"no status":            {strings.Repeat("x", 1<<19) + "\r\n\r\n", "malformed HTTP status code"},
		"cut in a letter":      {"500 no\r\nContent-Length: 1001\r\n\r\nx" + strings.Repeat("é", 500), "é"},
		"no text":              {"500 no\r\nContent-Length: 5\r\n\r\n\x1b\x00\xff\xfe\a", "instead of 200:"},
		"in circles":           {"302 go\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", "302 Found instead of 200:"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				if conn, err := l.Accept(); err == nil {
					_, _ = conn.Read(make([]byte, 1<<12))           // an answer before the request is none
					_, _ = conn.Write([]byte("HTTP/1.1 " + c.sent)) // who asks may have gone
					_ = conn.(*net.TCPConn).CloseWrite()
					_, _ = conn.Read(make([]byte, 1<<12))
					_ = conn.Close()
				}
			}()
			got := answer(t.Context(), &schema.HTTPHealth{URL: "http://admin:hunter2hunter2@" + l.Addr().String() + path})
			if !strings.Contains(got, c.want) || len(got) > 2*answerTold || !utf8.ValidString(got) || strings.Contains(got, "hunter2hunter2") || strings.Contains(got, "ghp_") {
				t.Errorf("%d bytes: %q, want %q", len(got), got, c.want)
			}
		})
	}
}

func TestNobodyAnswers(t *testing.T) {
	got := answer(t.Context(), &schema.HTTPHealth{URL: "http://admin:hunter2hunter2@127.0.0.1:1/health"})
	if !strings.Contains(got, "http://[removed]@127.0.0.1:1/health: ") || !strings.Contains(got, "connection refused") {
		t.Errorf("%q", got)
	}
}
