package schema

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// example gives the example that the schema of a kind shows first.
func example(t testing.TB, k Kind) []byte {
	t.Helper()
	return exampleTexts(t, k)[0]
}

func exampleTexts(t testing.TB, k Kind) [][]byte {
	t.Helper()
	c, err := compiled(k)
	if err != nil {
		t.Fatal(err)
	}
	var texts [][]byte
	for _, e := range c.strict().raw["examples"].([]any) {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return texts
}

func decoded(t testing.TB, k Kind, text []byte) any {
	t.Helper()
	v := newKind(t, k)
	if problems := Decode("example", text, v); hasErrors(problems) {
		t.Fatalf("%s: %s", k, lines(problems))
	}
	return v
}

var (
	oddTimes = []time.Time{{}, time.Unix(0, 0), time.Unix(-1, 0), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		time.Date(0, 1, 1, 0, 0, 0, 0, time.FixedZone("", 23*3600+59*60)), time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -7200)),
		time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 4, 5, 6, 7, 8, time.FixedZone("", 1800))}
	oddInts   = []int64{0, -1, 7, maxExactInt, maxExactInt + 1, math.MaxInt64, math.MinInt64}
	oddFloats = []float64{0, -1, 1.5, 1e21, math.Inf(1), math.NaN(), math.MaxFloat64}
)

// odden makes one value somewhere below v odd.
func odden(r *rand.Rand, v reflect.Value) {
	switch t := v.Type(); {
	case t == timeType:
		v.Set(reflect.ValueOf(oddTimes[r.IntN(len(oddTimes))]))
	case t.Kind() == reflect.Pointer:
		if v.IsNil() || r.IntN(8) == 0 {
			v.Set(reflect.New(t.Elem()))
		}
		odden(r, v.Elem())
	case t.Kind() == reflect.Struct:
		odden(r, v.Field(r.IntN(v.NumField())))
	case t.Kind() == reflect.Slice:
		if v.Len() == 0 || r.IntN(4) == 0 {
			v.Set(reflect.Append(v, reflect.Zero(t.Elem())))
		}
		odden(r, v.Index(r.IntN(v.Len())))
	case t.Kind() == reflect.Map:
		m := reflect.MakeMap(t)
		keys := []reflect.Value{reflect.ValueOf("files"), reflect.ValueOf(awkward[r.IntN(len(awkward))])}
		for it := v.MapRange(); it.Next(); {
			m.SetMapIndex(it.Key(), it.Value())
			keys = append(keys, it.Key())
		}
		k, e := keys[r.IntN(len(keys))], reflect.New(t.Elem()).Elem()
		if old := v.MapIndex(k); old.IsValid() {
			e.Set(old)
		}
		odden(r, e)
		m.SetMapIndex(k, e)
		v.Set(m)
	case t == anyType:
		values := []any{nil, true, awkward[r.IntN(len(awkward))], oddInts[r.IntN(len(oddInts))], oddFloats[r.IntN(len(oddFloats))], map[string]any{}, []any{}, []any{nil, "x"}}
		if m, ok := v.Interface().(map[string]any); ok && r.IntN(3) > 0 {
			inner := reflect.ValueOf(&m).Elem()
			odden(r, inner)
			v.Set(inner)
		} else if x := values[r.IntN(len(values))]; x != nil {
			v.Set(reflect.ValueOf(x))
		} else {
			v.SetZero()
		}
	case t.Kind() == reflect.String:
		v.SetString(awkward[r.IntN(len(awkward))])
	case v.CanInt():
		if n := oddInts[r.IntN(len(oddInts))]; !v.OverflowInt(n) {
			v.SetInt(n)
		}
	case v.CanFloat():
		v.SetFloat(oddFloats[r.IntN(len(oddFloats))])
	case t.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	}
}

// Whatever a document holds, it comes back as it was or is not written at all.
func TestWhatIsWrittenCanBeRead(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	for _, k := range Kinds() {
		written, refused := 0, 0
		texts := exampleTexts(t, k)
		for i := range 400 {
			v := decoded(t, k, texts[i%len(texts)])
			for range 1 + r.IntN(2) {
				odden(r, reflect.ValueOf(v).Elem())
			}
			out, err := Encode(v)
			if err != nil {
				refused++
				continue
			}
			written++
			again := newKind(t, k)
			read := Decode
			if k == KindAssignment { // its spec is passed on, whatever it holds
				read = DecodeStatus
			}
			if problems := read("x.yaml", out, again); hasErrors(problems) {
				t.Fatalf("%s: %s\n%s", k, lines(problems), out)
			}
			if twice, err := Encode(again); err != nil || string(twice) != string(out) {
				t.Fatalf("%s: %v, encoded\n%s\nthen\n%s", k, err, out, twice)
			}
		}
		if written < 40 || refused < 40 {
			t.Errorf("%s: %d were written and %d refused; both should be common", k, written, refused)
		}
	}
}

func TestTimesAreThoseOfClocks(t *testing.T) {
	out, err := Encode(decoded(t, KindReport, example(t, KindReport)))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"1970-01-01T00:00:00Z":      "",
		"9999-12-31T23:59:59Z":      "",
		"1970-01-01T01:00:00+01:00": "",
		"2026-11-29T10:02:00+14:00": "",
		"0000-01-01T00:00:00+23:59": "out of range",
		"0001-01-01T00:00:00Z":      "out of range",
		"1970-01-01T00:00:00+01:00": "out of range",
		"9999-12-31T23:59:59-00:01": "out of range",
		"2026-02-30T00:00:00Z":      "does not have the right form",
	} {
		doc := strings.Replace(string(out), "2026-11-29T10:02:00Z", text, 1)
		problems := Decode("report.yaml", []byte(doc), &Report{})
		switch {
		case want == "" && len(problems) == 0:
		case want != "" && len(problems) == 1 && strings.Contains(problems[0].Message, want) && problems[0].Line > 1 && problems[0].Pointer == "/reportedAt":
		default:
			t.Errorf("%s: %s, want %q", text, lines(problems), want)
		}
	}
}

// BenchmarkEncode is what one document costs to write, with the check that it
// can be read; reading one is the reference.
func BenchmarkEncode(b *testing.B) {
	for _, k := range []Kind{KindReport, KindDeviceStatus, KindAssignment} {
		text := example(b, k)
		v := decoded(b, k, text)
		b.Run(string(k), func(b *testing.B) {
			for b.Loop() {
				if _, err := Encode(v); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(string(k)+"/read", func(b *testing.B) {
			for b.Loop() {
				if problems := Decode("x", text, v); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
	}
}
