package github

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// away is a network without a way to GitHub.
type away struct{}

func (away) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no route to host")
}

// Whoever asks once has to do something: nothing goes on by itself.
func TestCheckHasARemedyForNoAnswer(t *testing.T) {
	cfg := newWorld(t).config()
	cfg.Transport = away{}
	list, err := Check(context.Background(), cfg)
	if err != nil || len(list) != 1 || list[0].OK || strings.Contains(list[0].Remedy, "tried again") || !strings.Contains(list[0].Remedy, "github.apiURL") {
		t.Errorf("%v: %+v", err, list)
	}
}
