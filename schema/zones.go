package schema

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // devices and small hosts often have no zone database
)

// zoneNames are the time zones that there are, one a line: those of the zone
// database that is compiled in. Which names are legal must not depend on the
// host, whose folder of zones may hold others.
//
//go:embed zones.txt
var zoneNames string

// location loads a time zone. Neither the zone of the host, which the next
// host does not have, nor an empty name, which would be UTC, is one.
func location(name string) (*time.Location, error) {
	for known := range strings.Lines(zoneNames) {
		if strings.TrimSuffix(known, "\n") != name {
			continue
		}
		loc, err := time.LoadLocation(name)
		if err != nil {
			return nil, fmt.Errorf("time zone %s: %w", name, err)
		}
		return loc, nil
	}
	return nil, errors.New("no name of a time zone")
}

// colloquial are names that people use and the zone database does not, each
// before the most probable of the zones that are meant.
const colloquial = `
bst Europe/London
cest Europe/Berlin
eest Europe/Helsinki
west Europe/Lisbon
edt America/New_York
cst America/Chicago
cdt America/Chicago
mdt America/Denver
pst America/Los_Angeles
pdt America/Los_Angeles
ist Asia/Kolkata
jst Asia/Tokyo
kst Asia/Seoul
sgt Asia/Singapore
aest Australia/Sydney
aedt Australia/Sydney
z UTC
`

// zoneHint says which time zone was probably meant.
func zoneHint(name string) string {
	plain := strings.ReplaceAll(strings.TrimSpace(name), " ", "_")
	for line := range strings.Lines(colloquial) {
		if word, near, _ := strings.Cut(strings.TrimSpace(line), " "); word != "" && strings.EqualFold(word, plain) {
			return fmt.Sprintf("did you mean %s?", near)
		}
	}
	names := strings.Fields(zoneNames)
	for _, known := range names {
		place := known[strings.LastIndexByte(known, '/')+1:]
		if strings.EqualFold(known, plain) || strings.EqualFold(place, plain) {
			return fmt.Sprintf("did you mean %s?", known)
		}
	}
	if near := Nearest(plain, names); near != "" {
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
