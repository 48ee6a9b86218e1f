package preview

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// said is how a setting is spoken of: in words that differ from its name, with
// the value that holds where it is absent.
type said struct {
	words   string
	absent  string
	careful more
}

// spoken are the settings that are said in other words than their name taken
// apart, or have a default or a direction. A field that is not among them is
// still told.
var spoken = map[string]said{
	"enabled":        {absent: "false"},
	"paused":         {absent: "not paused"},
	"deletionLimit":  {careful: lower},
	"selector":       {words: "selects", absent: "all devices"},
	"releaseLine":    {absent: "the policy's name"},
	"targetVersion":  {words: "target", absent: "the build of gitopsd"},
	"rollbackFrom":   {absent: "none"},
	"maxInFlight":    {absent: "1", careful: lower},
	"minAvailable":   {absent: "1", careful: higher},
	"pickupTimeout":  {absent: "1h"},
	"updateTimeout":  {absent: "30m"},
	"settle":         {absent: "0s", careful: higher},
	"maxAttempts":    {absent: "1", careful: lower},
	"backoff":        {absent: "10m, doubling, up to 24h"},
	"backoff.base":   {absent: "10m", careful: higher},
	"backoff.factor": {absent: "2", careful: higher},
	"backoff.cap":    {absent: "24h", careful: higher},
	"failureLimit":   {absent: "0", careful: lower},
	"refusalLimit":   {absent: "10%, at least 3", careful: lower},
	"minInterval":    {absent: "0s", careful: higher},
	"offlineAfter":   {absent: "three heartbeats, at least 5m"},
	"offlineGrace":   {absent: "1h"},
	"absentAfter":    {absent: "168h"},
	"minProtocol":    {absent: "1"},

	"forgetFailuresBefore": {words: "failures are forgotten that ended before", absent: "none"},

	"pilot":       {absent: "none"},
	"pilot.count": {careful: lower},
	"pilot.soak":  {absent: "0s", careful: higher},

	"waves.soak":             {words: "soak", absent: "0s", careful: higher},
	"waves.successThreshold": {words: "success threshold", absent: "100%", careful: higher},
	"waves.minSuccess":       {words: "min success", absent: "1", careful: higher},
	"waves.optional":         {words: "optional", absent: "false"},
	"waves.selector":         {words: "selects", absent: "all devices"},

	"budgets.maxUnavailable": {words: "max unavailable", careful: lower},
}

var entryOf = regexp.MustCompile(`^([^\[\]]+)\[(.*)\](?:\.(.*))?$`)

// speak finds the words for a field; of an entry of a list it gives the name
// of the entry first.
func speak(field string) (of string, s said) {
	plain := field
	if m := entryOf.FindStringSubmatch(field); m != nil {
		plain, of = m[1]+"."+m[3], singular(wordsOf(m[1]))+" "+m[2]
		if _, known := spoken[plain]; !known {
			return of, said{words: wordsOf(m[3])}
		}
	}
	s = spoken[plain]
	if s.words == "" {
		s.words = wordsOf(plain)
	}
	return of, s
}

// wordsOf takes a name in camel case apart: minInterval is "min interval".
func wordsOf(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'A' && r <= 'Z':
			b.WriteByte(' ')
			b.WriteRune(r - 'A' + 'a')
		case r == '.':
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func singular(s string) string { return strings.TrimSuffix(s, "s") }

// labelOf is what an entry of a list is called.
func labelOf(list string, o map[string]any) string {
	if name, ok := o["name"].(string); ok && name != "" {
		return name
	}
	if by, ok := o["groupBy"].([]any); ok {
		return "by " + valueText(by)
	}
	return entryText(o)
}

// entryText writes an entry without a name: what people would say first comes
// first.
func entryText(o map[string]any) string {
	var words []string
	told := map[string]bool{}
	for _, key := range []string{"days", "start", "duration", "timeZone", "from", "to", "note"} {
		v, has := o[key]
		if !has {
			continue
		}
		told[key] = true
		text := settingText(key, v)
		switch key {
		case "days":
			text = strings.ReplaceAll(text, ", ", ",")
		case "duration":
			text = "for " + text
		case "from", "to":
			text = key + " " + text
		case "note":
			text = fmt.Sprintf("(%v)", v)
		}
		words = append(words, text)
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if !told[key] {
			words = append(words, wordsOf(key)+" "+settingText(key, o[key]))
		}
	}
	return clip(strings.Join(words, " "), longestValue)
}

// add tells of a field.
func (d *settings) add(field string, from, to any) {
	of, s := speak(field)
	if d.fleet {
		s.absent = fleetAbsent[field]
	}
	f := PolicyField{Field: field, From: settingText(field, from), To: settingText(field, to)}
	name := s.words
	if of != "" {
		name = of + ": " + name
	}
	a, b := or(f.From, s.absent), or(f.To, s.absent)
	f.Careful = compareCare(s.careful, d.resolved(field, a), d.resolved(field, b))
	switch {
	case field == "paused" && to == nil:
		f.Words, f.Careful = "no longer paused, was "+f.From, "less"
	case field == "paused":
		f.Words = "paused: " + f.To
		if from == nil {
			f.Careful = "more"
		}
	case field == "enabled":
		f.Words = "switched " + onOff[b == "true"]
	case s.absent == "" && from == nil:
		f.Words = name + " " + f.To + ", new"
	case s.absent == "" && to == nil:
		f.Words = name + " " + f.From + " is gone"
	case field == "pilot" && from == nil:
		f.Words, f.Careful = name+" "+f.To+", new", "more"
	case field == "pilot" && to == nil:
		f.Words, f.Careful = name+" "+f.From+" is gone", "less"
	default:
		f.Words = name + " " + d.counted(field, a) + " → " + d.counted(field, b)
	}
	d.fields = append(d.fields, f)
}

var onOff = map[bool]string{true: "on", false: "off"}

// fleetAbsent are the values that hold for the whole fleet where nothing is
// set.
var fleetAbsent = map[string]string{"maxInFlight": "no limit", "deletionLimit": "20%, at least 2", "paused": "not paused"}

// words tells of an entry of a list that comes, goes or is another one.
func (d *settings) words(list string, from, to map[string]any, fromLabel, toLabel string) {
	what := singular(wordsOf(list))
	f := PolicyField{Field: list, From: fromLabel, To: toLabel}
	switch {
	case from == nil:
		f.Words = what + " " + toLabel + rest(to) + ", new"
		if gates[list] {
			f.Careful = "more"
		}
	case to == nil:
		f.Words = what + " " + fromLabel + rest(from) + " is gone"
		if gates[list] {
			f.Careful = "less"
		}
	default:
		f.Words = what + " " + fromLabel + " → " + toLabel
	}
	d.fields = append(d.fields, f)
}

// rest says what an entry with a name consists of.
func rest(o map[string]any) string {
	_, named := o["name"]
	_, grouped := o["groupBy"]
	if !named && !grouped {
		return ""
	}
	var words []string
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if key != "name" && key != "groupBy" {
			words = append(words, wordsOf(key)+" "+settingText(key, o[key]))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + clip(strings.Join(words, ", "), longestValue) + ")"
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// settingText writes the value of a setting on one line.
func settingText(field string, v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case map[string]any:
		if isSelector(field) {
			return selectorText(v)
		}
		if why, ok := v["reason"]; ok && len(v) == 1 {
			return fmt.Sprintf("%q", why)
		}
		var words []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			words = append(words, wordsOf(key)+" "+settingText(key, v[key]))
		}
		return clip(strings.Join(words, ", "), longestValue)
	case []any:
		if len(v) == 0 {
			return "none"
		}
		return clip(strings.ReplaceAll(valueText(v), " ", ", "), longestValue)
	}
	return clip(valueText(v), longestValue)
}

// selectorText writes a label selector as kubectl does.
func selectorText(v map[string]any) string {
	var words []string
	labels, _ := v["matchLabels"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, key+"="+valueText(labels[key]))
	}
	expressions, _ := v["matchExpressions"].([]any)
	for _, e := range expressions {
		x, _ := e.(map[string]any)
		text := valueText(x["key"]) + " " + strings.ToLower(valueText(x["operator"]))
		if values, ok := x["values"].([]any); ok {
			text += " (" + strings.ReplaceAll(valueText(values), " ", ", ") + ")"
		}
		words = append(words, text)
	}
	if len(words) == 0 {
		return "all devices"
	}
	return clip(strings.Join(words, ", "), longestValue)
}
