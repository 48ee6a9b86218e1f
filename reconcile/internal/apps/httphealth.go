package apps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	answerShown = 200 // bytes of an answer that a person sees
	answerTold  = 500 // bytes of all that is said of it
)

// answer says what is wrong with what an address answers, or "". Whoever answers
// may say anything: it goes into a report, which many can read.
func answer(ctx context.Context, h *schema.HTTPHealth) string {
	why := failure.WithoutSecrets(strings.ToValidUTF8(wrongAnswer(ctx, h), ""))
	if len(why) > answerTold {
		why = strings.ToValidUTF8(why[:answerTold], "") + "…"
	}
	return why
}

func wrongAnswer(ctx context.Context, h *schema.HTTPHealth) string {
	ctx, cancel := context.WithTimeout(ctx, checkLimit*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL, nil)
	if err != nil {
		return err.Error()
	}
	// Of its own, without a proxy: what is asked is this device's.
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err
		}
		return h.URL + ": " + err.Error()
	}
	defer resp.Body.Close()
	want := http.StatusOK
	if h.Status != 0 {
		want = h.Status
	}
	if resp.StatusCode == want {
		return ""
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, answerShown))
	said := strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", http.StatusText(resp.StatusCode)))
	return strings.TrimSpace(fmt.Sprintf("%s answers %s instead of %d: %s", h.URL, said, want, strings.Join(strings.Fields(string(body)), " ")))
}
