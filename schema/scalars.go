package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time, written like "1h30m".
type Duration time.Duration

// D is the duration, or def where d is nil.
func (d *Duration) D(def time.Duration) time.Duration {
	if d == nil {
		return def
	}
	return time.Duration(*d)
}

// String writes the duration as a document does, without zero parts at its
// end: 90m is "1h30m", 24h is "24h".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// longestDuration is the longest in whole hours, about 292 years.
const longestDuration = math.MaxInt64 / time.Hour * time.Hour

var durationForm = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`)

// UnmarshalJSON reads the form of [time.ParseDuration]; negative is refused.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a duration is a string such as \"30m\": %w", err)
	}
	v, err := time.ParseDuration(s)
	if err != nil && durationForm.MatchString(s) {
		return fmt.Errorf("the duration %q is too long; the longest is %s", s, Duration(longestDuration).String())
	}
	if err != nil {
		return fmt.Errorf("a duration such as \"30m\" or \"1h30m\" is wanted, not %q", s)
	}
	if v < 0 {
		return fmt.Errorf("duration %q is negative", s)
	}
	*d = Duration(v)
	return nil
}

// IntOrPercent is a count of devices, or a percentage of them.
type IntOrPercent struct {
	Value   int
	Percent bool
}

// ParseIntOrPercent reads "3" or "10%".
func ParseIntOrPercent(s string) (IntOrPercent, error) {
	num, percent := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(num)
	if err != nil || n < 0 || (percent && n > 100) {
		return IntOrPercent{}, errors.New("a count such as 3 or a percentage such as 10% is wanted")
	}
	return IntOrPercent{Value: n, Percent: percent}, nil
}

func (v IntOrPercent) String() string {
	if v.Percent {
		return strconv.Itoa(v.Value) + "%"
	}
	return strconv.Itoa(v.Value)
}

// MarshalJSON writes a number, or a string with a percent sign.
func (v IntOrPercent) MarshalJSON() ([]byte, error) {
	if v.Percent {
		return json.Marshal(v.String())
	}
	return json.Marshal(v.Value)
}

// UnmarshalJSON reads a number, or a string with a percent sign.
func (v *IntOrPercent) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	got, err := ParseIntOrPercent(s)
	if err != nil {
		return err
	}
	*v = got
	return nil
}

// UnmarshalJSON reads a mapping, or the word "off".
func (c *Confirm) UnmarshalJSON(b []byte) error {
	if string(b) == `"off"` {
		*c = Confirm{Off: true}
		return nil
	}
	type plain Confirm
	return json.Unmarshal(b, (*plain)(c))
}

// MarshalJSON writes what UnmarshalJSON reads.
func (c Confirm) MarshalJSON() ([]byte, error) {
	if c.Off {
		return []byte(`"off"`), nil
	}
	type plain Confirm
	return json.Marshal(plain(c))
}

// quantitySuffixes are the units of a number of bytes; longer ones first.
var quantitySuffixes = []struct {
	suffix string
	factor int64
}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"", 1}}

// ParseQuantity reads a number of bytes such as "500Mi"; the suffixes are k, M
// and G (powers of 1,000) and Ki, Mi and Gi (powers of 1,024).
func ParseQuantity(s string) (int64, error) {
	for _, unit := range quantitySuffixes {
		digits, ok := strings.CutSuffix(s, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 {
			break
		}
		if n > math.MaxInt64/unit.factor {
			return 0, fmt.Errorf("the size %q is too large", s)
		}
		return n * unit.factor, nil
	}
	return 0, fmt.Errorf("a number of bytes such as \"500Mi\" is wanted, not %q", s)
}
