package repo

import "strings"

// maxRefName bounds the name of a ref in bytes: a component has to fit a file
// name, and the whole a pkt-line with room for hashes.
const maxRefName = 1024

// CheckRef is nil for the name of a ref that git allows and this package
// writes, such as refs/heads/main.
func CheckRef(name string) error { return wrap("check", "", name, validRef(name)) }

// validRef tells whether a name is one that git allows (git-check-ref-format)
// and that stays below refs/ as a path on disk.
func validRef(name string) error {
	bad := func(why string) error {
		return fail(kindRefused, "%q is no legal ref name: %s", sanitize(name, 100), why)
	}
	switch {
	case len(name) > maxRefName:
		return bad("it is too long")
	case !strings.HasPrefix(name, "refs/"):
		return bad("it does not begin with refs/")
	case strings.HasSuffix(name, "."):
		return bad("it ends with a dot")
	case strings.Contains(name, ".."), strings.Contains(name, "@{"):
		return bad("it holds .. or @{")
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; c <= ' ' || c == 0x7f || strings.IndexByte("~^:?*[\\", c) >= 0 {
			return bad("it holds a space, a control character or one of ~^:?*[\\")
		}
	}
	parts := strings.Split(name, "/")
	if len(parts) < 3 {
		return bad("it has fewer than three parts")
	}
	for _, part := range parts {
		switch {
		case part == "":
			return bad("a part of it is empty")
		case part[0] == '.':
			return bad("a part of it begins with a dot")
		case strings.HasSuffix(part, ".lock"):
			return bad("a part of it ends with .lock")
		case len(part) > 250:
			return bad("a part of it is too long")
		}
	}
	return nil
}

// validPrefix tells whether a prefix of ref names may be sent to a server.
func validPrefix(p string) error {
	if !strings.HasPrefix(p, "refs/") || len(p) > maxRefName || strings.ContainsAny(p, "\n\x00 ") || strings.Contains(p, "..") {
		return fail(kindRefused, "%q is no prefix of ref names", sanitize(p, 100)).hint("it has to begin with refs/")
	}
	return nil
}
