package steadfast

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Writes the JSON of encoding/json. Calls are strict: texts that are not UTF-8 and numbers that are
// none are refused. States are given back as they were: their NaN, infinities and bytes that are no
// text are written in a way that nobody but this package reads.
type encoder struct {
	out     []byte
	isState bool
	depth   int
	most    int // bytes, 0 for no limit
	shares
}

// Pointers and maps of a state that stand in several places: JSON would make several values of one,
// of which a later call changes only one. So the first place has {"$":1,"of":value}, the others
// {"$":1}. Which they are is known when all is written once.
type shares struct {
	met, shared map[pointer]bool
	labels      map[pointer]int // nil when it is written first
	done        map[pointer]bool
}

// A struct and its first field have one address.
type pointer struct {
	at uintptr
	of reflect.Type
}

func encode(value any, isState bool) ([]byte, error) { return encodeAtMost(value, isState, 0) }

func encodeAtMost(value any, isState bool, most int) ([]byte, error) {
	e := &encoder{isState: isState, most: most}
	err := e.value(reflect.ValueOf(value))
	if err == nil && len(e.shared) > 0 {
		again := &encoder{isState: isState, most: most}
		again.shared, again.labels, again.done = e.shared, map[pointer]int{}, map[pointer]bool{}
		err = again.value(reflect.ValueOf(value))
		return again.out, err
	}
	return e.out, err
}

// Writes what a pointer or a map leads to, in the first of its places.
func (e *encoder) share(at pointer, always bool, write func() error) error {
	if e.labels == nil {
		if e.met[at] || always && e.isState {
			if e.shared == nil {
				e.shared = map[pointer]bool{}
			}
			e.shared[at] = true
		}
		if e.met[at] && e.isState {
			e.out = append(e.out, "null"...)
			return nil
		}
		if e.met[at] {
			return fmt.Errorf("a value of type %v leads to itself", at.of)
		}
		if e.met == nil {
			e.met = map[pointer]bool{}
		}
		e.met[at] = true
		err := write()
		if !e.isState { // callers may be told a value twice
			delete(e.met, at)
		}
		return err
	}
	if !e.shared[at] {
		return write()
	}
	if number, there := e.labels[at]; there {
		if !e.done[at] {
			return fmt.Errorf("a value of type %v leads to itself", at.of)
		}
		e.out = fmt.Appendf(e.out, `{"$":%d}`, number)
		return nil
	}
	e.labels[at] = len(e.labels) + 1
	e.out = fmt.Appendf(e.out, `{"$":%d,"of":`, e.labels[at])
	err := write()
	e.out = append(e.out, '}')
	e.done[at] = true
	return err
}

func (e *encoder) deeper() error {
	e.depth++
	most := callDepth
	if e.isState {
		most = stateDepth
	}
	if e.depth > most {
		return fmt.Errorf("it is nested more than %d deep", most)
	}
	return nil
}

func (e *encoder) value(v reflect.Value) error {
	if !v.IsValid() {
		e.out = append(e.out, "null"...)
		return nil
	}
	if e.most > 0 && len(e.out) > e.most {
		return errLarge
	}
	of := v.Type()
	if ownJSON(of) && !(of.Kind() == reflect.Pointer && v.IsNil()) {
		return e.own(v)
	}
	switch of.Kind() {
	case reflect.Bool:
		e.out = strconv.AppendBool(e.out, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.out = strconv.AppendInt(e.out, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.out = strconv.AppendUint(e.out, v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		return e.float(v.Float(), of.Bits())
	case reflect.String:
		return e.text(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			e.out = append(e.out, "null"...)
			return nil
		}
		if of.Kind() == reflect.Interface {
			return e.value(v.Elem())
		}
		return e.share(pointer{v.Pointer(), of}, false, func() error { return e.value(v.Elem()) })
	case reflect.Slice:
		if v.IsNil() {
			e.out = append(e.out, "null"...)
			return nil
		}
		if of.Elem().Kind() == reflect.Uint8 && !ownJSON(of.Elem()) {
			e.out = append(e.out, '"')
			e.out = base64.StdEncoding.AppendEncode(e.out, v.Bytes())
			e.out = append(e.out, '"')
			return nil
		}
		return e.list(v)
	case reflect.Array:
		return e.list(v)
	case reflect.Map:
		if v.IsNil() {
			e.out = append(e.out, "null"...)
			return nil
		}
		marked := of.Key().Kind() == reflect.String && v.MapIndex(reflect.ValueOf("$").Convert(of.Key())).IsValid()
		return e.share(pointer{v.Pointer(), of}, marked, func() error { return e.table(v) })
	case reflect.Struct:
		return e.fields(v)
	default:
		return fmt.Errorf("JSON has no %v", of)
	}
	return nil
}

func (e *encoder) own(v reflect.Value) error {
	// As encoding/json: a method of the pointer needs an address.
	if !v.CanAddr() {
		held := reflect.New(v.Type()).Elem()
		held.Set(v)
		v = held
	}
	text, err := json.Marshal(v.Addr().Interface())
	if err == nil && !e.isState {
		err = checkJSON(text)
	}
	e.out = append(e.out, text...)
	return err
}

func (e *encoder) float(number float64, bits int) error {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		if !e.isState {
			return fmt.Errorf("JSON has no number %v", number)
		}
		e.out = strconv.AppendQuote(e.out, strconv.FormatFloat(number, 'g', -1, bits))
		return nil
	}
	form := byte('f')
	if size := math.Abs(number); size != 0 && (size < 1e-6 || size >= 1e21) {
		form = 'e'
	}
	e.out = strconv.AppendFloat(e.out, number, form, -1, bits)
	if n := len(e.out); form == 'e' && e.out[n-4] == 'e' && e.out[n-2] == '0' { // e-09 is e-9 in JSON
		e.out = append(e.out[:n-2], e.out[n-1])
	}
	return nil
}

func (e *encoder) text(text string) error {
	if !utf8.ValidString(text) {
		if !e.isState {
			return fmt.Errorf("the text %q is not UTF-8", cut(text))
		}
		e.out = append(append(e.out, '"'), escapeBytes(text)...)
		e.out = append(e.out, '"')
		return nil
	}
	if isPlain(text) {
		e.out = append(append(append(e.out, '"'), text...), '"')
		return nil
	}
	told, err := json.Marshal(text)
	e.out = append(e.out, told...)
	return err
}

// Whether a text stands in JSON as it is.
func isPlain(text string) bool {
	for i := range len(text) {
		switch letter := text[i]; {
		case letter < ' ' || letter >= utf8.RuneSelf, letter == '"', letter == '\\', letter == '<', letter == '>', letter == '&':
			return false
		}
	}
	return true
}

// Bytes that are no text are written as the halves of surrogate pairs that no text has.
func escapeBytes(text string) []byte {
	var out []byte
	for len(text) > 0 {
		letter, size := utf8.DecodeRuneInString(text)
		if letter == utf8.RuneError && size == 1 {
			out = fmt.Appendf(out, `\udc%02x`, text[0])
		} else {
			told, _ := json.Marshal(text[:size])
			out = append(out, told[1:len(told)-1]...)
		}
		text = text[size:]
	}
	return out
}

func (e *encoder) list(v reflect.Value) error {
	if err := e.deeper(); err != nil {
		return err
	}
	e.out = append(e.out, '[')
	for i := range v.Len() {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if err := e.value(v.Index(i)); err != nil {
			return err
		}
	}
	e.out = append(e.out, ']')
	e.depth--
	return nil
}

func (e *encoder) table(v reflect.Value) error {
	if err := e.deeper(); err != nil {
		return err
	}
	type entry struct {
		key   string
		value reflect.Value
	}
	var entries []entry
	for _, key := range v.MapKeys() {
		name, err := keyText(key)
		if err != nil {
			return err
		}
		entries = append(entries, entry{name, v.MapIndex(key)})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	e.out = append(e.out, '{')
	for i, entry := range entries {
		if i > 0 {
			if entry.key == entries[i-1].key {
				return fmt.Errorf("two keys of a map are %q in JSON", entry.key)
			}
			e.out = append(e.out, ',')
		}
		if err := e.text(entry.key); err != nil {
			return err
		}
		e.out = append(e.out, ':')
		if err := e.value(entry.value); err != nil {
			return err
		}
	}
	e.out = append(e.out, '}')
	e.depth--
	return nil
}

func keyText(key reflect.Value) (string, error) {
	if key.Kind() == reflect.String {
		return key.String(), nil
	}
	if own, is := key.Interface().(interface{ MarshalText() ([]byte, error) }); is {
		text, err := own.MarshalText()
		return string(text), err
	}
	if key.CanInt() {
		return strconv.FormatInt(key.Int(), 10), nil
	}
	if key.CanUint() {
		return strconv.FormatUint(key.Uint(), 10), nil
	}
	return "", fmt.Errorf("JSON has no keys of type %v", key.Type())
}

func (e *encoder) fields(v reflect.Value) error {
	if err := e.deeper(); err != nil {
		return err
	}
	e.out = append(e.out, '{')
	comma := false
	for _, its := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(its.index)
		// A state names all its fields: what is left out would come back as its default.
		if its.omits && !e.isState && isEmpty(value) {
			continue
		}
		if comma {
			e.out = append(e.out, ',')
		}
		comma = true
		e.out = append(e.out, its.told...)
		if err := e.field(its, value); err != nil {
			return fmt.Errorf("field `%s`: %w", its.name, err)
		}
	}
	e.out = append(e.out, '}')
	e.depth--
	return nil
}

func (e *encoder) field(its field, value reflect.Value) error {
	if !its.quoted {
		return e.value(value)
	}
	from := len(e.out)
	if err := e.value(value); err != nil {
		return err
	}
	told, err := json.Marshal(string(e.out[from:]))
	e.out = append(e.out[:from], told...)
	return err
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.Array, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
