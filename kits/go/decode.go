package steadfast

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Reads values as encoding/json writes them. What that package ignores or changes in silence is
// refused: unknown and missing fields, arrays of another length, null for a number, rounding.
type decoder struct {
	isState bool
	dropped []string // fields of a state that its type does not know
	// Whether values may stand in several places, and those that were read: see shares.
	isLabelled bool
	made       map[string]reflect.Value
}

func (d *decoder) value(n node, v reflect.Value) error {
	of := v.Type()
	its := traitsOf(of)
	if its.reads {
		return json.Unmarshal(n.raw, v.Addr().Interface())
	}
	if n.kind == 'n' {
		switch of.Kind() {
		case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
			v.SetZero()
			return nil
		}
		return fmt.Errorf("null is no %v", of)
	}
	if its.readsText {
		return json.Unmarshal(n.raw, v.Addr().Interface())
	}
	if (of.Kind() == reflect.Pointer || of.Kind() == reflect.Map) && d.isLabelled && n.kind == '{' &&
		len(n.names) > 0 && n.names[0] == "$" && n.items[0].kind == '0' {
		return d.shared(n, v)
	}
	return d.inner(n, v)
}

// A value that stands in several places.
func (d *decoder) shared(n node, v reflect.Value) error {
	number := n.items[0].text
	if len(n.items) == 2 {
		if err := d.inner(n.items[1], v); err != nil {
			return err
		}
		if d.made == nil {
			d.made = map[string]reflect.Value{}
		}
		d.made[number] = reflect.ValueOf(v.Interface())
		return nil
	}
	made, there := d.made[number]
	if !there || made.Type() != v.Type() {
		return errors.New("its value stood in a field that is not known any more")
	}
	v.Set(made)
	return nil
}

func (d *decoder) inner(n node, v reflect.Value) error {
	of := v.Type()
	switch of.Kind() {
	case reflect.Pointer:
		held := reflect.New(of.Elem())
		v.Set(held)
		return d.value(n, held.Elem())
	case reflect.Interface:
		return d.plain(n, v)
	case reflect.Bool:
		if n.kind == 't' {
			v.SetBool(n.text == "true")
			return nil
		}
	case reflect.String:
		if n.kind == '"' {
			v.SetString(n.text)
			return nil
		}
	case reflect.Struct:
		if n.kind == '{' {
			return d.fields(n, v)
		}
	case reflect.Map:
		if n.kind == '{' {
			return d.table(n, v)
		}
	case reflect.Slice, reflect.Array:
		return d.list(n, v)
	default:
		return d.number(n, v)
	}
	return wrong(n, of)
}

func wrong(n node, of reflect.Type) error {
	return fmt.Errorf("%s is no %v", shown(n), of)
}

func shown(n node) string {
	switch n.kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a text"
	}
	return string(cut(n.text))
}

func (d *decoder) number(n node, v reflect.Value) error {
	if v.CanFloat() && d.isState && n.kind == '"' { // as the encoder writes NaN and infinities
		number, err := strconv.ParseFloat(n.text, 64)
		v.SetFloat(number)
		return err
	}
	if n.kind != '0' {
		return wrong(n, v.Type())
	}
	bits := v.Type().Bits()
	switch {
	case v.CanInt():
		number, err := strconv.ParseInt(n.text, 10, bits)
		if err != nil {
			return wrong(n, v.Type())
		}
		v.SetInt(number)
	case v.CanUint():
		number, err := strconv.ParseUint(n.text, 10, bits)
		if err != nil {
			return wrong(n, v.Type())
		}
		v.SetUint(number)
	default:
		number, err := exactFloat(n.text, bits)
		if err != nil {
			return err
		}
		v.SetFloat(number)
	}
	return nil
}

// A whole number is not rounded: whoever wrote it wants all its digits.
func exactFloat(text string, bits int) (float64, error) {
	number, err := strconv.ParseFloat(text, bits)
	if err != nil {
		return 0, fmt.Errorf("%s is no number of %d bits", cut(text), bits)
	}
	if !strings.ContainsAny(text, ".eE") && strconv.FormatFloat(number, 'f', 0, 64) != text && text != "-0" {
		return 0, fmt.Errorf("%s would be rounded to a number of %d bits: give it another type", cut(text), bits)
	}
	return number, nil
}

// A value of any type, as encoding/json makes it.
func (d *decoder) plain(n node, v reflect.Value) error {
	if v.NumMethod() > 0 {
		return fmt.Errorf("JSON does not tell the type within a %v", v.Type())
	}
	var made any
	switch n.kind {
	case '{':
		made = map[string]any{}
	case '[':
		made = []any{}
	case '"':
		made = n.text
	case 't':
		made = n.text == "true"
	default:
		number, err := exactFloat(n.text, 64)
		v.Set(reflect.ValueOf(number))
		return err
	}
	held := reflect.New(reflect.TypeOf(made)).Elem()
	if err := d.value(n, held); err != nil {
		return err
	}
	v.Set(held)
	return nil
}

func (d *decoder) list(n node, v reflect.Value) error {
	of := v.Type()
	if of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8 && !ownJSON(of.Elem()) {
		bytes, err := base64.StdEncoding.Strict().DecodeString(n.text)
		if n.kind != '"' || err != nil {
			return fmt.Errorf("%s is no text in base64", shown(n))
		}
		v.SetBytes(bytes)
		return nil
	}
	if n.kind != '[' {
		return wrong(n, of)
	}
	if of.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(of, len(n.items), len(n.items)))
	} else if len(n.items) != of.Len() {
		return fmt.Errorf("%d values for %v", len(n.items), of)
	}
	for i, item := range n.items {
		if err := d.value(item, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) table(n node, v reflect.Value) error {
	of := v.Type()
	v.Set(reflect.MakeMap(of))
	for i, name := range n.names {
		key, value := reflect.New(of.Key()).Elem(), reflect.New(of.Elem()).Elem()
		if err := decodeKey(name, key); err != nil {
			return err
		}
		if err := d.value(n.items[i], value); err != nil {
			return err
		}
		v.SetMapIndex(key, value)
	}
	return nil
}

// A key that is a number has one text: of two, JSON would lose one.
func decodeKey(name string, key reflect.Value) error {
	var err error
	switch own, is := key.Addr().Interface().(encoding.TextUnmarshaler); {
	case key.Kind() == reflect.String:
		key.SetString(name)
	case is:
		err = own.UnmarshalText([]byte(name))
	case key.CanInt():
		var number int64
		number, err = strconv.ParseInt(name, 10, key.Type().Bits())
		key.SetInt(number)
	default:
		var number uint64
		number, err = strconv.ParseUint(name, 10, key.Type().Bits())
		key.SetUint(number)
	}
	if err == nil {
		var text string
		if text, err = keyText(key); err == nil && text != name {
			err = errors.New("it has another text")
		}
	}
	if err != nil {
		return fmt.Errorf("%q is no key of type %v", cut(name), key.Type())
	}
	return nil
}

func (d *decoder) fields(n node, v reflect.Value) error {
	fields := fieldsOf(v.Type())
	there := make([]bool, len(fields))
	for i, name := range n.names {
		at := i // most are in order
		if at >= len(fields) || fields[at].name != name {
			at = d.find(fields, name)
		}
		if at < 0 && !d.isState {
			return fmt.Errorf("%v has no field %q", v.Type(), cut(name))
		}
		if at < 0 {
			d.drop(v.Type().Name() + "." + name)
			continue
		}
		if there[at] {
			return fmt.Errorf("field `%s` comes twice: as %q and by another name", fields[at].name, cut(name))
		}
		there[at] = true
		if err := d.field(n.items[i], fields[at], v.FieldByIndex(fields[at].index)); err != nil {
			return fmt.Errorf("field `%s`: %w", fields[at].name, err)
		}
	}
	for i, its := range fields {
		if there[i] {
			continue
		}
		if d.isState && !its.optional {
			return fmt.Errorf("field `%s` of %v is missing, and has no default: tag it `steadfast:\"default=...\"`",
				its.name, v.Type())
		}
		value := v.FieldByIndex(its.index)
		value.SetZero()
		if err := decodeDefault(its, value); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) find(fields []field, name string) int {
	at := slices.IndexFunc(fields, func(its field) bool { return its.name == name })
	if at < 0 && d.isState {
		return slices.IndexFunc(fields, func(its field) bool { return slices.Contains(its.was, name) })
	}
	if at < 0 { // as encoding/json
		return slices.IndexFunc(fields, func(its field) bool { return strings.EqualFold(its.name, name) })
	}
	return at
}

func (d *decoder) field(n node, its field, v reflect.Value) error {
	if its.quoted && n.kind == '"' {
		inner, err := parse([]byte(n.text), d.isState)
		if err != nil {
			return err
		}
		n = inner
	}
	v.SetZero()
	return d.value(n, v)
}

// Notes a field once, however many values have it.
func (d *decoder) drop(field string) {
	if !slices.Contains(d.dropped, field) {
		d.dropped = append(d.dropped, field)
	}
}

func decodeDefault(its field, v reflect.Value) error {
	if its.defaultValue == "" {
		return nil
	}
	n, err := parse([]byte(its.defaultValue), true)
	if err != nil {
		return err
	}
	return (&decoder{isState: true}).value(n, v)
}
