package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// errEmpty is for a flag that is given and is nothing.
var errEmpty = errors.New("it is empty; leave it out for the default")

// nonEmpty is a flag that, once it is given, is given something: an empty one is
// mostly a variable of a script that is not set, and not the default.
type nonEmpty string

// String is the text.
func (f *nonEmpty) String() string { return string(*f) }

// Type names the value in the help.
func (*nonEmpty) Type() string { return "string" }

// Set takes what is not empty.
func (f *nonEmpty) Set(text string) error {
	if text == "" {
		return errEmpty
	}
	*f = nonEmpty(text)
	return nil
}

// share is a flag that is a part of a whole, written as a percentage.
type share float64

// String is the percentage.
func (s *share) String() string { return s.text() }

func (s share) text() string {
	// Two digits behind the point are as much as anybody knows of the future.
	const hundredths = 10_000
	return strconv.FormatFloat(math.Round(float64(s)*hundredths)/100, 'f', -1, 64) + "%"
}

// Type names the value in the help.
func (s *share) Type() string { return "percent" }

// Set reads a percentage.
func (s *share) Set(text string) error {
	number, isPercent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || !(v >= 0 && v <= 100):
		return errors.New("want a percentage from 0% to 100%")
	case !isPercent:
		return fmt.Errorf("want a percentage, such as %s%%", number)
	}
	*s = share(v / 100)
	return nil
}

// span is a flag that is a length of time.
type span time.Duration

// String is the length as it is written; "" = none was given.
func (d *span) String() string {
	if *d == 0 {
		return ""
	}
	return schema.Duration(*d).String()
}

// Type names the value in the help.
func (d *span) Type() string { return "duration" }

// Set reads a length of time; beside what Go writes it takes days.
func (d *span) Set(text string) error {
	const day = 24 * time.Hour
	const longest = 3660 * day // ten years: further ahead nobody looks
	v, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		n, numberErr := strconv.ParseFloat(days, 64)
		if v, err = time.Duration(n*float64(day)), numberErr; err == nil && !(n < float64(longest/day)) {
			v = longest + 1
		}
	}
	switch {
	case err != nil:
		return errors.New("want a length of time, such as 30s, 5m, 2h or 7d")
	case v <= 0:
		return errors.New("want more than zero")
	case v > longest:
		return errors.New("want no more than ten years")
	}
	*d = span(v)
	return nil
}
