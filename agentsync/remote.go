package agentsync

import "context"

// Remote is a git repository as a device needs it: single refs, read and
// written whole. Package repo's *Device is one. An error may have a method
// Kind() string (see package repo); every method ends at its context's
// deadline.
type Remote interface {
	// Read gives the files of the tip of exactly this ref in as few exchanges
	// as the server allows. files is nil when the tip is still `have`; commit
	// is "" when the ref does not exist. limit bounds the bytes in total. An
	// error of the kind "corrupt" comes with the commit, if that is known.
	Read(ctx context.Context, ref, have string, limit int64) (commit string, files map[string][]byte, err error)
	// Write moves the ref from old ("" = absent) to a parentless commit of
	// these files. When the ref stands elsewhere the error's Kind is "race".
	Write(ctx context.Context, ref, old string, files map[string][]byte) (commit string, err error)
	// Answers is nil if the repository gives an answer of any kind, an error
	// page included; for a local path, if it can be read.
	Answers(ctx context.Context) error
	Close() error
}

// sparing is a Remote that can leave out what the device has: a file whose path
// known gives is nil then. known is asked only when the tip is another one.
type sparing interface {
	ReadBut(ctx context.Context, ref, have string, limit int64, known func() []string) (commit string, files map[string][]byte, err error)
}
