package schema

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // devices and small hosts often have no zone database
)

// zoneNames are the names of the time zones as a hint needs them, one a line.
// A zone that is newer than this list is known all the same.
//
//go:embed zones.txt
var zoneNames string

// zoneForm keeps names that are no paths from being looked up as files.
var zoneForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,3}$`)

// location loads a time zone. Neither the zone of the host, which the next
// host does not have, nor an empty name, which would be UTC, is one.
func location(name string) (*time.Location, error) {
	if !zoneForm.MatchString(name) || name == "Local" {
		return nil, errors.New("no name of a time zone")
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("time zone %s: %w", name, err)
	}
	// A file system that takes capitals for small letters knows names that
	// the next host does not.
	for known := range strings.Lines(zoneNames) {
		if known = strings.TrimSpace(known); known != name && strings.EqualFold(known, name) {
			return nil, fmt.Errorf("the name is written %s", known)
		}
	}
	return loc, nil
}

// colloquial are names that people use and the zone database does not, with
// the most probable of the zones that are meant.
var colloquial = map[string]string{
	"bst": "Europe/London", "cest": "Europe/Berlin", "eest": "Europe/Helsinki", "west": "Europe/Lisbon",
	"edt": "America/New_York", "cst": "America/Chicago", "cdt": "America/Chicago", "mdt": "America/Denver",
	"pst": "America/Los_Angeles", "pdt": "America/Los_Angeles", "ist": "Asia/Kolkata", "jst": "Asia/Tokyo",
	"kst": "Asia/Seoul", "sgt": "Asia/Singapore", "aest": "Australia/Sydney", "aedt": "Australia/Sydney",
	"utc+0": "UTC", "z": "UTC",
}

// zoneHint says which time zone was probably meant.
func zoneHint(name string) string {
	plain := strings.ReplaceAll(strings.TrimSpace(name), " ", "_")
	if near, ok := colloquial[strings.ToLower(plain)]; ok {
		return fmt.Sprintf("did you mean %s?", near)
	}
	names := strings.Fields(zoneNames)
	for _, known := range names {
		place := known[strings.LastIndexByte(known, '/')+1:]
		if strings.EqualFold(known, plain) || strings.EqualFold(place, plain) {
			return fmt.Sprintf("did you mean %s?", known)
		}
	}
	if near := nearest(plain, names); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "name it after a place, such as Europe/Berlin, so that summer time is kept; or UTC"
}

// Location is the time zone of a window of one of the fleet's policies. It is
// nil for a name that validation refused.
func (f *Fleet) Location(timeZone string) *time.Location { return f.zones[timeZone] }

// loadZones loads the time zones that the windows name, once for the loader.
func (p *pass) loadZones() map[string]*time.Location {
	zones := map[string]*time.Location{}
	for _, f := range p.policies {
		if f.content.policy == nil {
			continue
		}
		for i := range f.content.policy.Spec.Windows {
			name := f.content.policy.Spec.Windows[i].TimeZone
			loc := p.loader.zones[name]
			if loc == nil {
				var err error
				if loc, err = location(name); err != nil {
					continue
				}
			}
			zones[name] = loc
		}
	}
	p.loader.zones = zones
	return zones
}
