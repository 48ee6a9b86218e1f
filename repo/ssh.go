package repo

import (
	"context"
	"io"
)

type sshRemote struct {
	at    endpoint
	creds Credentials
}

func newSSHRemote(at endpoint, creds Credentials) *sshRemote { return &sshRemote{at, creds} }
func (s *sshRemote) upload(ctx context.Context, ask question, decide func(*listing) (*fetchRequest, error), sink func(io.Reader) error) error {
	return fail(kindRefused, "ssh is not there yet")
}
func (s *sshRemote) push(ctx context.Context, makePush func(capabilities) (*pushRequest, error)) (*pushResult, error) {
	return nil, fail(kindRefused, "ssh is not there yet")
}
func (s *sshRemote) answers(ctx context.Context) error {
	return fail(kindRefused, "ssh is not there yet")
}
func (s *sshRemote) close() {}
