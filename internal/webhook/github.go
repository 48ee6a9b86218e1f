package webhook

import (
	"mime"
	"net/http"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// Headers of a delivery.
const (
	headerSignature = "X-Hub-Signature-256"
	headerEvent     = "X-GitHub-Event"
	headerDelivery  = "X-GitHub-Delivery"
)

// maxDelivery bounds the id of a delivery; those of GitHub have 36 characters.
const maxDelivery = 100

const branchPrefix = "refs/heads/"

// github answers a delivery.
func (h *Hooks) github(w http.ResponseWriter, r *http.Request) answer {
	mac, wrong := signature(r, headerSignature)
	if wrong.status != 0 {
		return wrong
	}
	form, known := contentType(r)
	if !known {
		return answer{http.StatusUnsupportedMediaType, "the content type is neither application/json nor application/x-www-form-urlencoded"}
	}
	body, done, wrong := h.signedBody(w, r, maxBody, mac)
	defer done()
	if wrong.status != 0 {
		return wrong
	}
	id := r.Header.Get(headerDelivery)
	if len(id) > maxDelivery || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return answer{http.StatusBadRequest, "the header " + headerDelivery + " is no id"}
	}
	d := delivery{id: id, body: body}
	var err error
	if d.payload, err = payload(form, body); err != nil {
		return h.unreadable(d, err)
	}
	switch event := r.Header.Get(headerEvent); event {
	case "":
		return answer{http.StatusBadRequest, "the header " + headerEvent + " is missing"}
	case "ping":
		return answer{http.StatusOK, "pong"}
	case "push":
		d.event = event
		return h.push(d)
	case "pull_request":
		d.event = event
		return h.pullRequest(d)
	}
	return ignored("events of this kind are not needed")
}

// delivery is one whose signature holds.
type delivery struct {
	id      string
	event   string
	body    []byte // as it was sent
	payload []byte
}

// contentType says whether the body is JSON or a form with JSON in it.
func contentType(r *http.Request) (form, known bool) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form = kind == "application/x-www-form-urlencoded"
	return form, err == nil && (form || kind == "application/json")
}

func ignored(why string) answer { return answer{http.StatusAccepted, "ignored: " + why} }

// unreadable is for a payload that is signed and makes no sense.
func (h *Hooks) unreadable(d delivery, err error) answer {
	h.log.Warn("a signed delivery cannot be read", keyEvent, d.event, keyDelivery, d.id, keyReason, err.Error())
	return answer{http.StatusBadRequest, "the payload cannot be read: " + err.Error()}
}

// elsewhere is for a delivery of another repository: one hook may be for all
// repositories of an organisation, and a wrong name would otherwise be a
// riddle.
func (h *Hooks) elsewhere(d delivery) answer {
	if n := h.foreign.due(h.cfg.Now()); n > 0 {
		h.log.Warn("deliveries of another repository are ignored", keyCount, n, keyDelivery, d.id,
			keyRemedy, "if it is the fleet repository by another name, set webhook.repository to its owner/name")
	}
	return ignored("it is not the repository of this fleet")
}

// first says whether a delivery did not come before. Its id is not signed, so
// that whoever sends one again could give it another; its body is.
func (h *Hooks) first(d delivery) bool {
	keys := []key{keyOf("body", d.body)}
	if d.id != "" {
		keys = append(keys, keyOf("delivery", []byte(d.id)))
	}
	return h.seen.add(keys...)
}

func again() answer {
	return answer{http.StatusOK, "this delivery was here before, nothing is done twice"}
}

func (h *Hooks) push(d delivery) answer {
	p, err := decodePush(d.payload)
	if err != nil {
		return h.unreadable(d, err)
	}
	if !h.watched.is(p.Repository) {
		return h.elsewhere(d)
	}
	// The status branch is among the others: what the daemon pushed itself
	// must not bring a sweep.
	branch, isBranch := strings.CutPrefix(p.Ref, branchPrefix)
	if !isBranch || branch != h.cfg.Branch && branch != schema.BrakeBranch {
		return ignored("only the source branch and the brake branch bring a sweep")
	}
	if !h.first(d) {
		return again()
	}
	news := Push{Branch: branch, Before: commit(p.Before), Commit: commit(p.After)}
	h.log.Info("a push was announced", keyBranch, branch, keyCommit, short(news.Commit), keyDelivery, d.id)
	h.cfg.Push(news)
	return answer{http.StatusAccepted, "the branch is being looked at"}
}

func (h *Hooks) pullRequest(d delivery) answer {
	if h.cfg.PullRequest == nil {
		return ignored("this daemon does nothing for pull requests")
	}
	p, err := decodePullRequest(d.payload)
	if err != nil {
		return h.unreadable(d, err)
	}
	if !h.watched.is(p.Repository) {
		return h.elsewhere(d)
	}
	base := p.Changes.Base
	switch p.Action {
	case "opened", "synchronize", "reopened", "closed":
	case "edited":
		if base == nil {
			return ignored("what was edited does not matter here")
		}
	default:
		return ignored("this action does not matter here")
	}
	if p.PullRequest.Base.Ref != h.cfg.Branch && (base == nil || base.Ref.From != h.cfg.Branch) {
		return ignored("it is a pull request of another branch")
	}
	if !h.first(d) {
		return again()
	}
	h.log.Debug("a pull request was announced", keyNumber, p.Number, keyDelivery, d.id)
	h.cfg.PullRequest(PullRequest{Number: p.Number, Action: p.Action, Head: p.PullRequest.Head.SHA})
	return answer{http.StatusAccepted, "the pull request is being looked at"}
}

// short is a commit for people.
func short(commit string) string { return commit[:min(len(commit), shortDigits)] }

// shortDigits of a hash are shown.
const shortDigits = 7
