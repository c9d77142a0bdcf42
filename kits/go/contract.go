package steadfast

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

type contract struct {
	Service   string              `json:"service"`
	Encodings []string            `json:"encodings"`
	Methods   []methodContract    `json:"methods"`
	Types     map[string]typeForm `json:"types,omitempty"`
	named     map[reflect.Type]string
}

type methodContract struct {
	Name      string      `json:"name"`
	Reads     bool        `json:"reads"`
	Docs      string      `json:"docs,omitempty"`
	Arguments []fieldForm `json:"arguments"`
	Result    string      `json:"result"`
	Error     string      `json:"error,omitempty"`
}

type fieldForm struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

type typeForm struct {
	Kind   string      `json:"kind"`
	Fields []fieldForm `json:"fields"`
}

// What callers in every language read: docs/protocol/attach.md, section Contract.
func contractOf(name string, handlers []Handler) []byte {
	told := contract{Service: name, Encodings: []string{"json"}, Types: map[string]typeForm{}, named: map[reflect.Type]string{}}
	for _, handler := range handlers {
		method := methodContract{Name: handler.name, Reads: handler.reads, Docs: handler.docs, Result: "()"}
		types, _ := handler.arguments()
		method.Arguments = []fieldForm{}
		for i, of := range types {
			method.Arguments = append(method.Arguments, fieldForm{handler.names[i], told.name(of)})
		}
		result, fails := handler.results()
		if result != nil {
			method.Result = told.name(result)
		}
		if fails {
			method.Error = "json"
		}
		told.Methods = append(told.Methods, method)
	}
	text, err := json.Marshal(told)
	if err != nil {
		panic(fmt.Sprintf("steadfast: the contract: %v", err))
	}
	return text
}

var ownForm = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}

// A type in the contract's form. One with a JSON of its own is told by its name alone.
func (c *contract) name(of reflect.Type) string {
	for _, own := range ownForm {
		if of.Implements(own) || reflect.PointerTo(of).Implements(own) {
			return "json " + of.String()
		}
	}
	switch of.Kind() {
	case reflect.Bool:
		return "bool"
	case reflect.String:
		return "String"
	case reflect.Int, reflect.Int64:
		return "i64"
	case reflect.Uint, reflect.Uint64:
		return "u64"
	case reflect.Int8, reflect.Int16, reflect.Int32:
		return "i" + of.Kind().String()[len("int"):]
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return "u" + of.Kind().String()[len("uint"):]
	case reflect.Float32, reflect.Float64:
		return "f" + of.Kind().String()[len("float"):]
	case reflect.Pointer:
		return "Option<" + c.name(of.Elem()) + ">"
	case reflect.Slice:
		if of.Elem().Kind() != reflect.Uint8 { // whose JSON is a text in base64
			return "Vec<" + c.name(of.Elem()) + ">"
		}
	case reflect.Array:
		return fmt.Sprintf("[%s; %d]", c.name(of.Elem()), of.Len())
	case reflect.Map:
		return "Map<" + c.name(of.Key()) + ", " + c.name(of.Elem()) + ">"
	case reflect.Struct:
		if name := c.define(of); name != "" {
			return name
		}
	}
	return "json " + of.String()
}

// Defines a struct and returns its name there. One without a plain name or fields has none.
func (c *contract) define(of reflect.Type) string {
	if name, done := c.named[of]; done {
		return name
	}
	name := of.Name()
	if _, taken := c.Types[name]; taken {
		name = of.String() // with its package
	}
	if _, taken := c.Types[name]; taken || name == "" || strings.ContainsAny(name, "[]") {
		return ""
	}
	c.named[of] = name
	c.Types[name] = typeForm{} // a type may contain itself
	form := typeForm{Kind: "struct", Fields: []fieldForm{}}
	for i := range of.NumField() {
		field := of.Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous || tag == "-" || !field.IsExported() {
			continue // an embedded struct's fields are told by nobody, and taken all the same
		}
		if tag == "" {
			tag = field.Name
		}
		form.Fields = append(form.Fields, fieldForm{tag, c.name(field.Type)})
	}
	if len(form.Fields) == 0 {
		delete(c.Types, name)
		c.named[of] = ""
		return ""
	}
	c.Types[name] = form
	return name
}
