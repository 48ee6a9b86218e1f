package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"
	"syscall"
)

// Attributes are extended attributes of a file, by name.
type Attributes map[string][]byte

// Names that the kernel gives a meaning.
const (
	attrLabel      = "security.selinux"
	attrSmack      = "security.SMACK64"
	attrACL        = "system.posix_acl_access"
	attrCapability = "security.capability"
)

// maxAttributes bounds what the attributes of one file may take, in bytes; most
// file systems hold 4 KiB.
const maxAttributes = 256 << 10

// follows says whether an attribute is one of the place, so that a file that
// takes the place of another gets it, as one that is edited keeps it: labels,
// access lists, and what people note on files.
//
// All others are of the content that goes. Capabilities were given to that
// program, and the kernel itself takes them away when somebody writes to it;
// a signature of the integrity subsystem would be wrong for any other content;
// and what is trusted is how file systems keep their own books.
func follows(name string) bool {
	switch name {
	case attrLabel, attrSmack, attrACL:
		return true
	}
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.")
}

// comesBack says whether an attribute belongs to a file that is put back as it
// was. Without root, nobody may give capabilities.
func comesBack(name string) bool {
	return follows(name) || name == attrCapability && os.Geteuid() == 0
}

// Capable says whether there are capabilities among them.
func (a Attributes) Capable() bool { return len(a[attrCapability]) > 0 }

// Attributes gives what of a file's extended attributes belongs to it when it is
// put back as it was, see [Meta.Attributes]. Where the file system has none, it
// is empty.
func (r *Root) Attributes(p string) (Attributes, error) {
	real, err := r.Resolve(p)
	if err != nil {
		return nil, err
	}
	a, err := r.attributes(real, comesBack)
	if err != nil {
		return nil, fmt.Errorf("attributes of %s: %w", p, bare(err))
	}
	return a, nil
}

// attributes reads those of a regular file that are wanted.
func (r *Root) attributes(real string, wanted func(string) bool) (Attributes, error) {
	f, err := r.root.OpenFile(rel(real), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil // without root: what cannot be read cannot be kept
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return attributesOf(f, wanted)
}

// setAttributes gives a new file its attributes. It may have some already, by
// the folder that it was made in; an access list of there goes.
func (r *Root) setAttributes(f *os.File, name string, want Attributes) error {
	have, err := attributesOf(f, comesBack)
	if err != nil || maps.EqualFunc(have, want, bytes.Equal) {
		return err
	}
	if err := r.step("setxattr", name); err != nil {
		return err
	}
	if _, inherited := have[attrACL]; inherited && want[attrACL] == nil {
		if err := removeAttribute(f, attrACL); err != nil {
			return fmt.Errorf("attribute %s: %w", attrACL, err)
		}
	}
	for attr, value := range want {
		if bytes.Equal(have[attr], value) && have[attr] != nil {
			continue
		}
		if err := setAttribute(f, attr, value); err != nil {
			return fmt.Errorf("attribute %s: %w", attr, err)
		}
	}
	return nil
}
