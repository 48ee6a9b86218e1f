package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers of a request for a sweep.
const (
	headerSweepTime      = "X-Gitopsd-Timestamp"
	headerSweepSignature = "X-Gitopsd-Signature-256"
)

const (
	// sweepWindow is how far the time of a request may be from ours: clocks
	// differ, and a request that somebody kept must soon be worth nothing.
	sweepWindow = 5 * time.Minute
	// maxSweepBody bounds a body that is signed and not looked at.
	maxSweepBody = 64 << 10
	// maxTimestamp is the number of digits of a second in the year 5138.
	maxTimestamp = 11
)

// sweep answers a request for a sweep. What is signed is the time, a dot, and
// the body as it is: a signed delivery begins with neither.
func (h *Hooks) sweep(w http.ResponseWriter, r *http.Request) answer {
	mac, wrong := signature(r, headerSweepSignature)
	if wrong.status != 0 {
		return wrong
	}
	times := r.Header.Values(headerSweepTime)
	if len(times) != 1 || times[0] == "" || len(times[0]) > maxTimestamp || strings.Trim(times[0], "0123456789") != "" {
		return answer{http.StatusUnauthorized, "the header " + headerSweepTime + " is not the seconds since 1970"}
	}
	_, done, wrong := h.signedBody(w, r, maxSweepBody, mac, []byte(times[0]), []byte("."))
	defer done()
	if wrong.status != 0 {
		return wrong
	}
	seconds, err := strconv.ParseInt(times[0], 10, 64)
	if err != nil || h.cfg.Now().Sub(time.Unix(seconds, 0)).Abs() > sweepWindow {
		return answer{http.StatusUnauthorized, "the time of the request is more than " + sweepWindow.String() + " away from the daemon's; is one of the clocks wrong?"}
	}
	if !h.seen.add(keyOf("sweep", mac)) {
		return again()
	}
	h.log.Info("a sweep was asked for")
	h.cfg.Sweep()
	return answer{http.StatusAccepted, "a sweep is coming"}
}
