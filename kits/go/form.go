package steadfast

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Depths to which arrays and objects are nested at most: those of calls, and those of states.
const (
	callDepth  = 64
	stateDepth = 1000
)

// A field of a struct as JSON has it.
type field struct {
	name, goName string
	told         []byte   // the name in JSON, and a colon
	was          []string // former names: `steadfast:"was=old"`
	index        []int
	of           reflect.Type
	omits        bool // `omitempty`, `omitzero`
	quoted       bool // `string`
	// A state that lacks the field is read: by `steadfast:"default=..."`, or because a version of
	// this type may have left it out.
	optional     bool
	defaultValue string
}

// What JSON does with a type that is not told by the type alone.
var (
	marshaler       = reflect.TypeFor[json.Marshaler]()
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	numberType      = reflect.TypeFor[json.Number]()
)

func has(of, method reflect.Type) bool {
	return of.Implements(method) || of.Kind() != reflect.Pointer && reflect.PointerTo(of).Implements(method)
}

// How a type writes and reads itself; asking for that takes longer than to write a number.
type traits struct {
	writes, reads, readsText bool
	fields                   []field
}

var known sync.Map // of *traits by reflect.Type

func traitsOf(of reflect.Type) *traits {
	if found, there := known.Load(of); there {
		return found.(*traits)
	}
	made := &traits{
		writes:    of == numberType || has(of, marshaler) || has(of, textMarshaler),
		reads:     of.Kind() != reflect.Pointer && (of == numberType || has(of, unmarshaler)),
		readsText: of.Kind() != reflect.Pointer && has(of, textUnmarshaler),
	}
	if of.Kind() == reflect.Struct {
		made.fields = listFields(of)
	}
	known.Store(of, made)
	return made
}

// Whether a type writes itself.
func ownJSON(of reflect.Type) bool { return traitsOf(of).writes }

// The fields of a struct, those of embedded structs among them.
func fieldsOf(of reflect.Type) []field { return traitsOf(of).fields }

func listFields(of reflect.Type) []field {
	var fields []field
	for i := range of.NumField() {
		its := of.Field(i)
		tag := its.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		if its.Anonymous && name == "" && its.Type.Kind() == reflect.Struct && !ownJSON(its.Type) {
			for _, inner := range fieldsOf(its.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
			continue
		}
		if !its.IsExported() {
			continue
		}
		made := field{name: name, goName: its.Name, index: []int{i}, of: its.Type}
		if name == "" {
			made.name = its.Name
		}
		for _, option := range strings.Split(options, ",") {
			made.omits = made.omits || option == "omitempty" || option == "omitzero"
			made.quoted = made.quoted || option == "string"
		}
		// The default comes last: it is JSON, and may have commas.
		ours, value, given := strings.Cut(its.Tag.Get("steadfast"), "default=")
		for _, option := range strings.Split(ours, ",") {
			if old, is := strings.CutPrefix(option, "was="); is {
				made.was = append(made.was, old)
			}
		}
		made.defaultValue = value
		quoted, _ := json.Marshal(made.name)
		made.told = append(quoted, ':')
		made.optional = given || made.omits || its.Type.Kind() == reflect.Pointer
		fields = append(fields, made)
	}
	return fields
}

// Refuses a state type of which JSON would lose or change something. It says which field and why.
func checkState(of reflect.Type) error {
	return checkKept(of, of.String(), map[reflect.Type]bool{})
}

func checkKept(of reflect.Type, place string, seen map[reflect.Type]bool) error {
	if seen[of] {
		return nil
	}
	seen[of] = true
	if own := ownJSON(of); own || has(of, unmarshaler) || has(of, textUnmarshaler) {
		if of != numberType && (has(of, marshaler) != has(of, unmarshaler) ||
			!has(of, marshaler) && has(of, textMarshaler) != has(of, textUnmarshaler)) {
			return fmt.Errorf("%s: %v writes JSON of its own or reads it, and not both: give it both methods", place, of)
		}
		return nil
	}
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return checkKept(of.Elem(), place, seen)
	case reflect.Map:
		key := of.Key().Kind()
		if key != reflect.String && (key < reflect.Int || key > reflect.Uintptr) && !has(of.Key(), textMarshaler) {
			return fmt.Errorf("%s: JSON has no keys of type %v", place, of.Key())
		}
		return checkKept(of.Elem(), place, seen)
	case reflect.Interface:
		return fmt.Errorf("%s is an interface: JSON does not tell the type within; use a struct", place)
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128, reflect.Uintptr:
		return fmt.Errorf("%s: JSON has no %v; tag it `json:\"-\"` if it is no part of the state", place, of)
	case reflect.Struct:
		return checkStruct(of, place, seen)
	}
	return nil
}

func checkStruct(of reflect.Type, place string, seen map[reflect.Type]bool) error {
	for i := range of.NumField() {
		its := of.Field(i)
		where := place + "." + its.Name
		if its.Tag.Get("json") == "-" {
			continue
		}
		embedded := its.Anonymous && its.Type.Kind() == reflect.Struct
		if !its.IsExported() && !embedded {
			return fmt.Errorf("%s is not exported: JSON would lose it. Export it, tag it `json:\"-\"` if it is "+
				"no part of the state, or give the state Snapshot and Restore", where)
		}
		if its.Anonymous && its.Type.Kind() == reflect.Pointer && its.Tag.Get("json") == "" {
			return fmt.Errorf("%s is an embedded pointer: give the field a name", where)
		}
		if err := checkKept(its.Type, where, seen); err != nil {
			return err
		}
	}
	var names []string
	for _, its := range fieldsOf(of) {
		for _, name := range append([]string{its.name}, its.was...) {
			if name == "$" {
				return fmt.Errorf("%s: the name \"$\" is taken: states mark with it what stands in several places", place)
			}
			if slices.Contains(names, name) {
				return fmt.Errorf("%s: two fields have the name %q in JSON: JSON would lose one", place, name)
			}
			names = append(names, name)
		}
		if its.defaultValue != "" {
			if err := decodeDefault(its, reflect.New(its.of).Elem()); err != nil {
				return fmt.Errorf("%s.%s: its default: %v", place, its.goName, err)
			}
		}
	}
	return nil
}
