package planner

import (
	"strconv"
	"time"
)

// frozen is what freezes say of the present.
type frozen struct {
	freezes []Freeze
	by      int // which one is in force, the one that ends last; -1 = none
	until   time.Time
}

// frozen asks freezes about the present.
func (pl *plan) frozen(freezes []Freeze) frozen {
	f := frozen{freezes: freezes, by: -1}
	for i := range freezes {
		if z := &freezes[i]; pl.reached(z.From) && !pl.reached(z.To) && (f.by < 0 || z.To.After(freezes[f.by].To)) {
			f.by = i
		}
	}
	if f.by >= 0 {
		f.until = f.from(pl.Now)
	}
	return f
}

// from is the first time from t on that is not frozen.
func (f frozen) from(t time.Time) time.Time {
	for again := true; again; {
		again = false
		for i := range f.freezes {
			if z := &f.freezes[i]; !t.Before(z.From) && t.Before(z.To) {
				t, again = z.To, true
			}
		}
	}
	return t
}

func (f frozen) summary() *FreezeSummary {
	if f.by < 0 {
		return nil
	}
	return &FreezeSummary{Note: word(f.freezes[f.by].Note), Until: f.until}
}

// hold is what those are told whom the freeze in force holds back.
func (f frozen) hold(what string) finding {
	z := f.freezes[f.by]
	v := no(Frozen, because(what+" "+at(f.until), z.Note))
	v.field = "freezes[" + strconv.Itoa(f.by) + "]"
	return v
}
