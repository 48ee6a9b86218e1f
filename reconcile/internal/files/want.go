package files

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/secrets"
	"github.com/gitopsd/gitopsd/schema"
)

// Modes of what a spec says none for.
const (
	fileMode   = fs.FileMode(0o644)
	dirMode    = fs.FileMode(0o755)
	parentMode = dirMode // of folders that are made only because a file needs them
)

// Bounds of a Linux path, in bytes.
const (
	maxPath = 4095
	maxName = 255
)

// want is one file or directory that a spec asks for.
type want struct {
	spec string // path as the spec writes it
	real string // without symlinks among its parents
	dir  bool
	meta disk.Meta
	sum  string // sha256 of the content, hex
	size int64  // of the content; -1 = a payload, not known before reading
	data []byte // nil = the payload sum
	// secret is a file that nobody is shown; sealed is what it is encrypted as,
	// "" once sum, size and data are known.
	secret bool
	sealed string
	seal   string // sha256 of what it is encrypted as, hex
	kept   bool   // it stays sealed, because its file is as it was
	err    error  // why it cannot be had here; nothing else is to be relied on then
	// blocked is set where a parent is a file now; it may be one that goes.
	blocked error
}

func (w *want) component() string {
	if w.dir {
		return "directories"
	}
	return "files"
}

func (w *want) permanent(format string, args ...any) error {
	return failure.Permanent(w.component(), w.spec, format, args...)
}

// failure classifies an operating system's error: what another try cannot
// change is permanent.
func (w *want) failure(err error) error { return classify(w.component(), w.spec, err) }

func classify(component, element string, err error) error {
	var f *failure.Error
	if err == nil || errors.As(err, &f) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	for _, final := range []error{
		disk.ErrSymlink, disk.ErrNotRegular, fs.ErrInvalid, fs.ErrPermission, syscall.EISDIR, syscall.ENOTDIR,
		syscall.ELOOP, syscall.ENAMETOOLONG,
	} {
		if errors.Is(err, final) {
			return failure.Permanent(component, element, "%w", err)
		}
	}
	return failure.Retryable(component, element, "%w", err)
}

func joinErrors(errs []error) error { return failure.Join(errs...) }

// wants reads a spec, parents first. The error is for a device whose users
// cannot be read at all; what is wrong with one path stands in its want.
func (c *Controller) wants(spec *schema.Spec) ([]*want, error) {
	c.followProtected()
	if spec == nil {
		return nil, nil
	}
	c.ids.reset()
	var wants []*want
	for p, d := range spec.Directories {
		w := &want{spec: p, dir: true}
		if d == nil {
			d = &schema.Directory{}
		}
		w.err = c.fill(w, d.Mode, dirMode, d.Owner, d.Group)
		wants = append(wants, w)
	}
	for p, f := range spec.Files {
		w := &want{spec: p}
		mode := fileMode
		if f != nil && f.Secret != "" {
			mode = secretMode
		}
		if f == nil {
			w.err = w.permanent("it has no content")
		} else if w.err = c.fill(w, f.Mode, mode, f.Owner, f.Group); w.err == nil {
			w.err = w.fillContent(f)
		}
		wants = append(wants, w)
	}
	sort.Slice(wants, func(i, j int) bool {
		if wants[i].spec != wants[j].spec {
			return wants[i].spec < wants[j].spec
		}
		return wants[i].dir
	})
	c.findClashes(wants)
	return wants, nil
}

// fill checks the path and looks up mode and owner.
func (c *Controller) fill(w *want, mode string, def fs.FileMode, owner, group string) error {
	if why := badPath(w.spec); why != "" {
		return w.permanent("%s", why)
	}
	var err error
	w.real, err = c.root.Resolve(w.spec)
	if errors.Is(err, syscall.ENOTDIR) {
		w.real, w.blocked = w.spec, err
	} else if err != nil {
		return w.failure(err)
	}
	for _, p := range []string{w.spec, w.real} {
		if why := c.isProtected(p); why != "" {
			return w.permanent("%s is protected: %s", p, why)
		}
		if !w.dir && c.coversProtected(p) {
			return w.permanent("%s is protected: it is a folder that the agent needs", p)
		}
	}
	if w.meta.Mode, err = parseMode(mode, def); err != nil {
		return w.permanent("%w", err)
	}
	if w.meta.UID, err = c.ids.user(owner); err != nil {
		return classify(w.component(), w.spec, err)
	}
	if w.meta.GID, err = c.ids.group(group); err != nil {
		return classify(w.component(), w.spec, err)
	}
	return nil
}

var payloadDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func (w *want) fillContent(f *schema.File) error {
	set := 0
	for _, is := range []bool{f.Content != nil, f.ContentBase64 != nil, f.Payload != "", f.Secret != ""} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return w.permanent("exactly one of content, contentBase64, payload and secret is wanted")
	case f.Content != nil:
		w.hold([]byte(*f.Content))
	case f.ContentBase64 != nil:
		data, err := base64.StdEncoding.DecodeString(*f.ContentBase64)
		if err != nil {
			return w.permanent("contentBase64: %w", err)
		}
		w.hold(data)
	case f.Secret != "":
		sum := sha256.Sum256([]byte(f.Secret))
		w.secret, w.sealed, w.seal = true, f.Secret, hex.EncodeToString(sum[:])
	default:
		if !payloadDigest.MatchString(f.Payload) {
			return w.permanent("payload %q is not sha256:<64 hex digits>", f.Payload)
		}
		w.sum, w.size = strings.TrimPrefix(f.Payload, "sha256:"), -1
	}
	return nil
}

// hold takes content that is in memory.
func (w *want) hold(data []byte) {
	sum := sha256.Sum256(data)
	w.data, w.sum, w.size = data, hex.EncodeToString(sum[:]), int64(len(data))
}

// bytes gives the content, checked against its sum.
func (w *want) bytes(p Payloads) ([]byte, error) {
	if w.sealed != "" {
		return nil, failure.Retryable(w.component(), w.spec, "%w", secrets.ErrNoIdentity)
	}
	if w.size >= 0 {
		return w.data, nil
	}
	if p == nil {
		return nil, failure.Retryable("files", w.spec, "payload sha256:%s is not there", w.sum)
	}
	data, err := p("sha256:" + w.sum)
	if err != nil {
		return nil, classify("files", w.spec, fmt.Errorf("payload sha256:%s: %w", w.sum, err))
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != w.sum {
		return nil, failure.Retryable("files", w.spec, "payload sha256:%s is damaged", w.sum)
	}
	return data, nil
}

// badPath says what is wrong with a path, or "".
func badPath(p string) string {
	switch {
	case !strings.HasPrefix(p, "/"):
		return "an absolute path is wanted"
	case p == "/":
		return "the root itself is protected"
	case len(p) > maxPath:
		return fmt.Sprintf("the path is longer than %d bytes", maxPath)
	case path.Clean(p) != p:
		return fmt.Sprintf("the path is written in a roundabout way; write %q", path.Clean(p))
	case !utf8.ValidString(p):
		return "the path is not UTF-8"
	}
	for _, r := range p {
		if unicode.IsControl(r) {
			return fmt.Sprintf("the path has a control character (%U)", r)
		}
	}
	for _, name := range strings.Split(p, "/") {
		if len(name) > maxName {
			return fmt.Sprintf("a name in the path is longer than %d bytes", maxName)
		}
		if disk.IsTemp(name) {
			return "names of this form are temporary files of the agent"
		}
	}
	return ""
}

var octalMode = regexp.MustCompile(`^(0o)?[0-7]{3,4}$`)

func parseMode(s string, def fs.FileMode) (fs.FileMode, error) {
	if s == "" {
		return def, nil
	}
	if !octalMode.MatchString(s) {
		return 0, fmt.Errorf("mode %q is not three or four octal digits, such as \"0644\"", s)
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "0o"), 8, 32)
	if err != nil {
		return 0, fmt.Errorf("mode %q: %w", s, err)
	}
	m := fs.FileMode(n) & fs.ModePerm
	if n&0o4000 != 0 {
		m |= fs.ModeSetuid
	}
	if n&0o2000 != 0 {
		m |= fs.ModeSetgid
	}
	if n&0o1000 != 0 {
		m |= fs.ModeSticky
	}
	return m, nil
}

// findClashes marks what cannot be there together: two paths that are one on
// this device, and a file that would have to be a folder for another.
func (c *Controller) findClashes(wants []*want) {
	at := map[string]*want{}
	for _, w := range wants {
		if w.err != nil {
			continue
		}
		if other := at[w.real]; other != nil {
			w.err = w.permanent("it is the same path as %s on this device", other.spec)
			continue
		}
		at[w.real] = w
	}
	for _, w := range wants {
		if w.err != nil {
			continue
		}
		for d := path.Dir(w.real); d != "/"; d = path.Dir(d) {
			if over := at[d]; over != nil && !over.dir {
				w.err = w.permanent("%s is a file of the same spec", over.spec)
				break
			}
		}
	}
}
