package github

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// maxAnswer bounds an answer in bytes: a page of comments, each as long as
	// GitHub allows and escaped as far as JSON can, is below it.
	maxAnswer = 16 << 20
	// answerTimeout bounds one request with its answer. GitHub itself gives up
	// after ten seconds of work.
	answerTimeout = 30 * time.Second
)

// whole gives only answers that arrived whole and are what they say: a cut or
// empty list would pass for one in which there is nothing.
type whole struct{ next http.RoundTripper }

// RoundTrip sends one request and reads its answer.
func (t whole) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), answerTimeout)
	defer cancel()
	r, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, hung(req, ctx, err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, hung(req, ctx, fmt.Errorf("the answer ended early: %w", err))
	case len(data) > maxAnswer:
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	case r.StatusCode >= 200 && r.StatusCode < 300 && r.StatusCode != http.StatusNoContent && !json.Valid(data):
		return nil, fmt.Errorf("the answer is no JSON but %s", or(clean(r.Header.Get("Content-Type")), "of no type"))
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	r.ContentLength = int64(len(data))
	return r, nil
}

// hung says that a server did not answer in time, where that is what happened.
func hung(req *http.Request, ctx context.Context, err error) error {
	if req.Context().Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no whole answer within %v", answerTimeout)
	}
	return err
}
