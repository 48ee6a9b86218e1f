package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// repository is what a payload says of its repository.
type repository struct {
	FullName string `json:"full_name"`
	CloneURL string `json:"clone_url"`
	SSHURL   string `json:"ssh_url"`
	GitURL   string `json:"git_url"`
	HTMLURL  string `json:"html_url"`
}

func (r repository) named() bool { return r != repository{} }

// list is a JSON array whose content does not matter; null is none.
type list struct{}

var errNoList = errors.New("commits is not a list")

// UnmarshalJSON looks at the first byte: the decoder has checked the rest.
func (*list) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte("[")) {
		return errNoList
	}
	return nil
}

type pushPayload struct {
	Ref        string     `json:"ref"`
	Before     string     `json:"before"`
	After      string     `json:"after"`
	Commits    list       `json:"commits"`
	Repository repository `json:"repository"`
}

type pullRequestPayload struct {
	Action      string `json:"action"`
	Number      int    `json:"number"`
	PullRequest struct {
		Head struct {
			SHA string `json:"sha"`
		} `json:"head"`
		Base struct {
			Ref string `json:"ref"`
		} `json:"base"`
	} `json:"pull_request"`
	Changes struct {
		Base *struct {
			Ref struct {
				From string `json:"from"`
			} `json:"ref"`
		} `json:"base"`
	} `json:"changes"`
	Repository repository `json:"repository"`
}

// payload is the JSON of a delivery. GitHub signs the body as it is sent, also
// that of a form.
func payload(form bool, body []byte) ([]byte, error) {
	if !form {
		return body, nil
	}
	values, err := url.ParseQuery(string(body))
	if err != nil || len(values["payload"]) != 1 {
		return nil, errors.New("the form does not have one field payload")
	}
	return []byte(values["payload"][0]), nil
}

// decode reads a payload. Its errors hold nothing of it: they go to the log.
func decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNoList):
		return errNoList
	case errors.As(err, &wrongType) && wrongType.Field != "":
		return fmt.Errorf("%s is of the wrong type", wrongType.Field)
	case errors.As(err, &wrongType):
		return errors.New("it is not an object")
	}
	return errors.New("it is not JSON")
}

// push reads a push payload.
func decodePush(data []byte) (p pushPayload, err error) {
	if err := decode(data, &p); err != nil {
		return p, err
	}
	switch {
	case !strings.HasPrefix(p.Ref, "refs/"):
		return p, errors.New("ref is no ref")
	case p.After != "" && !isCommit(p.After), p.Before != "" && !isCommit(p.Before):
		return p, errors.New("before or after is no commit")
	case p.After == "":
		return p, errors.New("after is missing")
	case !p.Repository.named():
		return p, errNoRepository
	}
	return p, nil
}

func decodePullRequest(data []byte) (p pullRequestPayload, err error) {
	if err := decode(data, &p); err != nil {
		return p, err
	}
	switch {
	case p.Number <= 0:
		return p, errors.New("number is missing")
	case p.PullRequest.Base.Ref == "":
		return p, errors.New("pull_request.base.ref is missing")
	case !isCommit(p.PullRequest.Head.SHA):
		return p, errors.New("pull_request.head.sha is no commit")
	case !p.Repository.named():
		return p, errNoRepository
	}
	return p, nil
}

var errNoRepository = errors.New("repository is missing")

// Lengths of the hash of a commit in hex digits.
const (
	sha1Digits   = 40
	sha256Digits = 64
)

func isCommit(s string) bool {
	return (len(s) == sha1Digits || len(s) == sha256Digits) && strings.Trim(s, "0123456789abcdef") == ""
}

// commit is a hash of a payload, in which zeros stand for none.
func commit(s string) string {
	if strings.Trim(s, "0") == "" {
		return ""
	}
	return s
}
