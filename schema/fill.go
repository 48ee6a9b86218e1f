package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"
	"time"
)

// fillProblem is a value that does not fit its Go field.
type fillProblem struct {
	pointer string
	unknown bool
	rule    string // "" = [ruleForm]
	hint    string
	err     error
}

// filler copies a JSON instance into Go values. It exists so that the decoder
// sees the very values that the schema saw: going through JSON text would turn
// integers of free-form specs into floats.
type filler struct {
	problems []fillProblem
	maps     *scratch // for labels and variables
}

func (f *filler) fail(pointer string, err error) {
	f.problems = append(f.problems, fillProblem{pointer: pointer, err: err})
}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	confirmType     = reflect.TypeFor[Confirm]()
	anyType         = reflect.TypeFor[any]()
	textsType       = reflect.TypeFor[map[string]string]()
)

func (f *filler) fill(dst reflect.Value, src any, pointer string) {
	if src == nil {
		return // null is the absent value; where it means removal the tree is kept as written
	}
	t := dst.Type()
	if t.Kind() == reflect.Pointer {
		p := reflect.New(t.Elem())
		before := len(f.problems)
		f.fill(p.Elem(), src, pointer)
		if _, whole := src.(map[string]any); whole || len(f.problems) == before {
			dst.Set(p) // a value that could not be read is absent, not zero
		}
		return
	}
	if t == timeType {
		f.fillTime(dst, src, pointer)
		return
	}
	_, isMap := src.(map[string]any)
	if dst.CanAddr() && dst.Addr().Type().Implements(jsonUnmarshaler) && (t != confirmType || !isMap) {
		b, err := json.Marshal(src)
		if err == nil {
			err = dst.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(b)
		}
		if err != nil {
			f.fail(pointer, err)
		}
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		f.fillStruct(dst, src, pointer)
	case reflect.Map:
		m, ok := src.(map[string]any)
		if !ok {
			f.fail(pointer, fmt.Errorf("a mapping is wanted, not %s", typeName(src)))
			return
		}
		if t.Elem() == anyType {
			dst.Set(reflect.ValueOf(m))
			return
		}
		if t == textsType {
			if texts, ok := allTexts(m, f.maps.text()); ok {
				dst.Set(reflect.ValueOf(texts))
				return
			}
		}
		out := reflect.MakeMapWithSize(t, len(m))
		for k, v := range m {
			e := reflect.New(t.Elem()).Elem()
			f.fill(e, v, pointer+"/"+escapePointer(k))
			out.SetMapIndex(reflect.ValueOf(k).Convert(t.Key()), e)
		}
		dst.Set(out)
	case reflect.Slice:
		l, ok := src.([]any)
		if !ok {
			f.fail(pointer, fmt.Errorf("a list is wanted, not %s", typeName(src)))
			return
		}
		out := reflect.MakeSlice(t, len(l), len(l))
		for i, v := range l {
			f.fill(out.Index(i), v, pointer+"/"+strconv.Itoa(i))
		}
		dst.Set(out)
	default:
		f.fillScalar(dst, src, pointer)
	}
}

// allTexts fills in the mapping where all of its values are texts. Labels and
// variables are most of what is filled.
func allTexts(m map[string]any, texts map[string]string) (map[string]string, bool) {
	for k, v := range m {
		text, ok := v.(string)
		if !ok {
			return nil, false
		}
		texts[k] = text
	}
	return texts, true
}

// The years of a time, in UTC: no clock that was ever set shows an earlier one,
// and a later one has no form in RFC 3339. An offset can leave them although
// the year that is written does not.
const firstYear, lastYear = 1970, 9999

func (f *filler) fillTime(dst reflect.Value, src any, pointer string) {
	text, _ := src.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		f.problems = append(f.problems, fillProblem{pointer: pointer, rule: ruleForm,
			err: fmt.Errorf("%s is no time", shown(src)), hint: "write it as 2026-11-29T10:02:00Z"})
		return
	}
	if year := at.UTC().Year(); year < firstYear || year > lastYear {
		f.problems = append(f.problems, fillProblem{pointer: pointer, rule: ruleRange,
			err: fmt.Errorf("%s is out of range; in UTC its year is from %d to %d", quote(text), firstYear, lastYear)})
		return
	}
	dst.Set(reflect.ValueOf(at.UTC()))
}

func (f *filler) fillScalar(dst reflect.Value, src any, pointer string) {
	switch v := src.(type) {
	case string:
		if dst.Kind() == reflect.String {
			dst.SetString(v)
			return
		}
	case bool:
		if dst.Kind() == reflect.Bool {
			dst.SetBool(v)
			return
		}
	default:
		n, isNumber := number(src)
		if !isNumber {
			break
		}
		switch dst.Kind() {
		case reflect.Int, reflect.Int64:
			if n == math.Trunc(n) && math.Abs(n) <= maxExactInt && !dst.OverflowInt(int64(n)) {
				dst.SetInt(int64(n))
				return
			}
			f.fail(pointer, fmt.Errorf("a whole number is wanted, not %v", src))
			return
		case reflect.Float64:
			dst.SetFloat(n)
			return
		}
	}
	f.fail(pointer, fmt.Errorf("%s is wanted, not %s", kindName(dst.Kind()), typeName(src)))
}

// number gives the value of whatever Go type a tree holds numbers in; trees
// come from the reader (int64, float64) and from encoding/json.
func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	case float64:
		return n, true
	case json.Number:
		x, err := n.Float64()
		return x, err == nil
	}
	return 0, false
}

func (f *filler) fillStruct(dst reflect.Value, src any, pointer string) {
	m, ok := src.(map[string]any)
	if !ok {
		f.fail(pointer, fmt.Errorf("a mapping is wanted, not %s", typeName(src)))
		return
	}
	seen := 0
	f.fillFields(dst, m, pointer, &seen)
	if seen == len(m) {
		return
	}
	known := map[string]reflect.Type{}
	fieldTypes(dst.Type(), known)
	var unknown []string
	for k := range m {
		if known[k] == nil {
			unknown = append(unknown, k)
		}
	}
	sort.Strings(unknown)
	for _, k := range unknown {
		f.problems = append(f.problems, fillProblem{pointer: pointer + "/" + escapePointer(k), unknown: true,
			err: fmt.Errorf("unknown field %s", quote(k))})
	}
}

func (f *filler) fillFields(dst reflect.Value, m map[string]any, pointer string, seen *int) {
	all := fieldsOf(dst.Type())
	for i := range all {
		sf := &all[i]
		if sf.embedded {
			f.fillFields(dst.Field(sf.index), m, pointer, seen)
			continue
		}
		if sf.name == "" {
			continue
		}
		v, ok := m[sf.name]
		if !ok {
			continue
		}
		*seen++
		f.fill(dst.Field(sf.index), v, pointer+"/"+escapePointer(sf.name))
	}
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "true or false"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	default:
		return "a number"
	}
}

func kindName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	default:
		return "a number"
	}
}
