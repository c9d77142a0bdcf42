// Package steadfast serves a replica in Go: a value whose methods clients call by name, with
// arguments in JSON. The node of this host starts the program (steadfast run).
//
// All replicas execute the same calls in the same order. A handler's result and effects may depend
// on nothing but the state, the arguments and the [Context]: no clock, no random numbers of its
// own, no order of a map. docs/protocol/attach.md tells what goes over the socket.
package steadfast

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Context is what a handler may know beside the state and its arguments. A handler takes it as its
// first argument, by pointer, if it wants it.
type Context struct {
	Now    uint64 // ordered time, in nanoseconds since 1970: the same at every replica
	Seed   uint64 // for random numbers, the same at every replica
	Client uint64 // the caller
	Number uint64 // which of the caller's calls
}

// Error is an error of the service with a value: the caller gets it in JSON. Of other errors it
// gets the text.
type Error struct{ Value any }

func (e Error) Error() string { return fmt.Sprint(e.Value) }

// Snapshotter is for states that are not the JSON of their exported fields. Without it, Serve
// refuses a state of which JSON would lose something.
type Snapshotter interface {
	Snapshot() ([]byte, error)
	Restore([]byte) error
}

// Handler is one method of a service.
type Handler struct {
	name, docs string
	reads      bool
	function   reflect.Value
	names      []string
}

// Method is a handler that may change the state: a function that takes the state by pointer, then
// perhaps a *Context, then the arguments with these names, and returns a result, an error, both
// or nothing.
func Method(name string, function any, arguments ...string) Handler {
	return Handler{name: name, function: reflect.ValueOf(function), names: arguments}
}

// Read is a handler that changes nothing: any replica may execute it, without an order.
func Read(name string, function any, arguments ...string) Handler {
	handler := Method(name, function, arguments...)
	handler.reads = true
	return handler
}

// Docs gives a handler its documentation, which the contract tells.
func (h Handler) Docs(text string) Handler {
	h.docs = text
	return h
}

var (
	contextType = reflect.TypeFor[*Context]()
	errorType   = reflect.TypeFor[error]()
)

// The types of the arguments: behind the state, and the context if the handler takes it.
func (h Handler) arguments() (types []reflect.Type, withContext bool) {
	of := h.function.Type()
	for i := 1; i < of.NumIn(); i++ {
		if i == 1 && of.In(i) == contextType {
			withContext = true
			continue
		}
		types = append(types, of.In(i))
	}
	return types, withContext
}

// The type of the result, nil for none, and whether the handler may return an error.
func (h Handler) results() (result reflect.Type, fails bool) {
	of := h.function.Type()
	for i := range of.NumOut() {
		if of.Out(i) == errorType {
			fails = true
		} else {
			result = of.Out(i)
		}
	}
	return result, fails
}

// Says what a handler lacks, before anything is served.
func (h Handler) check(state reflect.Type) {
	kind := h.function.Kind()
	if kind != reflect.Func || h.function.Type().NumIn() == 0 || h.function.Type().In(0) != state {
		panic(fmt.Sprintf("steadfast: method %q needs a function that takes %v first", h.name, state))
	}
	of := h.function.Type()
	types, _ := h.arguments()
	if len(types) != len(h.names) {
		panic(fmt.Sprintf("steadfast: method %q has %d arguments and %d names", h.name, len(types), len(h.names)))
	}
	if of.NumOut() > 2 || of.NumOut() == 2 && of.Out(1) != errorType {
		panic(fmt.Sprintf("steadfast: method %q returns a result, an error, or both in this order", h.name))
	}
}

// The number by which a method is known: FNV-1a of its name in 64 bits, its halves folded into 32.
func methodID(name string) uint32 {
	hash := uint64(0xcbf29ce484222325)
	for i := range len(name) {
		hash = (hash ^ uint64(name[i])) * 0x100000001b3
	}
	return uint32(hash ^ hash>>32)
}

const describe = "steadfast.describe"

// Outcomes and refusals of the protocol.
const (
	ok, failed, refused                                         = 1, 2, 3
	noSuchMethod, badArguments, panicked, tooLarge, notReadOnly = 3, 4, 5, 7, 10
)

type outcome struct {
	outcome, refusal, flags byte
	body                    []byte
}

func refusal(reason byte, format string, values ...any) outcome {
	return outcome{refused, reason, 0, cut(fmt.Sprintf(format, values...))}
}

// A reason has at most 512 bytes of text.
func cut(text string) []byte {
	if len(text) > 512 {
		text = text[:512]
	}
	return bytes.ToValidUTF8([]byte(text), nil)
}

type service struct {
	initial  func() any
	state    any
	methods  map[uint32]Handler
	contract []byte
	keeping  keeping
}

func newService(name string, initial func() any, handlers []Handler) *service {
	s := &service{initial: initial, state: initial(), methods: map[uint32]Handler{}}
	for _, handler := range handlers {
		handler.check(reflect.TypeOf(s.state))
		id := methodID(handler.name)
		if _, twice := s.methods[id]; twice || handler.name == describe {
			panic(fmt.Sprintf("steadfast: method %q: choose another name", handler.name))
		}
		s.methods[id] = handler
	}
	s.contract = contractOf(name, handlers)
	return s
}

// Runs a call's handler: the body of an Execute frame behind its number. It also says whether the
// state may be another one now.
func (s *service) run(body []byte) (result outcome, changes bool) {
	word := binary.LittleEndian.Uint64
	context := &Context{Now: word(body), Seed: word(body[8:]), Client: word(body[16:]), Number: word(body[24:])}
	method, flags, arguments := binary.LittleEndian.Uint32(body[32:]), body[36], body[40:]
	if flags&1 == 0 {
		return refusal(badArguments, "this service takes JSON"), false
	}
	if method == methodID(describe) {
		return outcome{ok, 0, 0, s.contract}, false
	}
	handler, known := s.methods[method]
	if !known {
		return refusal(noSuchMethod, "no such method: `steadfast describe` lists those of this service"), false
	}
	if flags&2 != 0 && !handler.reads {
		return refusal(notReadOnly, "%s may change the state: do not call it as a read", handler.name), false
	}
	values, err := handler.decode(arguments)
	if err != nil {
		return refusal(badArguments, "%s: %v", handler.name, err), false
	}
	defer func() {
		if reason := recover(); reason != nil {
			result = refusal(panicked, "%s panicked: %v", handler.name, reason)
			result.flags, changes = 1, !handler.reads
		}
	}()
	in := []reflect.Value{reflect.ValueOf(s.state)}
	if _, withContext := handler.arguments(); withContext {
		in = append(in, reflect.ValueOf(context))
	}
	return handler.encode(handler.function.Call(append(in, values...))), !handler.reads
}

// Reads the arguments: an array in order, or an object by their names.
func (h Handler) decode(body []byte) ([]reflect.Value, error) {
	n, err := parse(body, false)
	if err != nil {
		return nil, err
	}
	given := n.items
	if n.kind == '{' {
		given = nil
		for _, name := range h.names {
			value := node{kind: 'n', raw: []byte("null")}
			if at := slices.Index(n.names, name); at >= 0 {
				value = n.items[at]
			}
			given = append(given, value)
		}
		for _, name := range n.names {
			if !slices.Contains(h.names, name) {
				return nil, fmt.Errorf("no argument is named %q", cut(name))
			}
		}
	} else if n.kind != '[' {
		return nil, errors.New("give an array in order, or an object by names")
	}
	types, _ := h.arguments()
	if len(given) != len(types) {
		return nil, fmt.Errorf("%d arguments, not %d", len(types), len(given))
	}
	values := make([]reflect.Value, len(types))
	for i, of := range types {
		// Go takes null for any type; a caller who leaves something out is told so.
		if given[i].kind == 'n' && of.Kind() != reflect.Pointer && of.Kind() != reflect.Interface {
			return nil, fmt.Errorf("argument %s is missing", h.names[i])
		}
		values[i] = reflect.New(of).Elem()
		if err := new(decoder).value(given[i], values[i]); err != nil {
			return nil, fmt.Errorf("argument %s: %w", h.names[i], err)
		}
	}
	return values, nil
}

func (h Handler) encode(out []reflect.Value) outcome {
	result, fails := h.results()
	if fails {
		if err, _ := out[len(out)-1].Interface().(error); err != nil {
			var value any = err.Error()
			var own Error
			if errors.As(err, &own) {
				value = own.Value
			}
			return encoded(failed, value)
		}
	}
	if result == nil {
		return encoded(ok, nil)
	}
	return encoded(ok, out[0].Interface())
}

func encoded(kind byte, value any) outcome {
	body, err := encode(value, false)
	// An empty list is told as one: a nil slice or map would be null, which no caller expects.
	switch of := reflect.ValueOf(value); {
	case of.Kind() == reflect.Slice && of.IsNil() && of.Type().Elem().Kind() != reflect.Uint8:
		body = []byte("[]")
	case of.Kind() == reflect.Map && of.IsNil():
		body = []byte("{}")
	}
	if err != nil {
		return refusal(panicked, "the result has no JSON: %v", err)
	}
	if len(body) > maxBody {
		return refusal(tooLarge, "the result has %d bytes, at most %d are sent", len(body), maxBody)
	}
	return outcome{kind, 0, 0, body}
}
