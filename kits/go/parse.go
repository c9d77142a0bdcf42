package steadfast

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A JSON value. encoding/json would take the later of two equal names, and put U+FFFD for what is
// no text.
type node struct {
	kind  byte   // one of {["0tn: an object, an array, a text, a number, true or false, null
	text  string // of a text, a number, true or false
	names []string
	items []node
	raw   []byte
}

type parser struct {
	body    []byte
	at      int
	isState bool
	depth   int
}

func parse(body []byte, isState bool) (node, error) {
	// Values within a larger text are strict in a call; their syntax is checked here once for all.
	if !json.Valid(body) {
		var any any
		return node{}, fmt.Errorf("no JSON: %w", json.Unmarshal(body, &any))
	}
	p := parser{body: body, isState: isState}
	return p.value()
}

// Refuses JSON that other languages read otherwise.
func checkJSON(body []byte) error {
	_, err := parse(body, false)
	return err
}

func (p *parser) blanks() {
	for p.at < len(p.body) && p.body[p.at] <= ' ' {
		p.at++
	}
}

// Takes a comma or what ends an array or an object; true at its end. The syntax is known to be right.
func (p *parser) ends(end byte) bool {
	p.blanks()
	letter := p.body[p.at]
	if letter == ',' || letter == end {
		p.at++
	}
	return letter == end
}

func (p *parser) value() (node, error) {
	p.blanks()
	from := p.at
	made := node{kind: p.body[from]}
	var err error
	switch made.kind {
	case '{', '[':
		err = p.inner(&made)
	case '"':
		made.text, err = p.string()
	default:
		for p.at < len(p.body) && p.body[p.at] > ' ' && p.body[p.at] != ',' && p.body[p.at] != ']' && p.body[p.at] != '}' {
			p.at++
		}
		made.text = string(p.body[from:p.at])
		switch made.kind {
		case 'f':
			made.kind = 't'
		case 't', 'n':
		default:
			made.kind = '0'
		}
	}
	made.raw = p.body[from:p.at]
	return made, err
}

func (p *parser) inner(made *node) error {
	p.depth++
	if most := map[bool]int{false: callDepth, true: stateDepth}[p.isState]; p.depth > most {
		return fmt.Errorf("it is nested more than %d deep", most)
	}
	end := made.kind + 2 // ] behind [, } behind {
	p.at++
	var known map[string]bool
	for !p.ends(end) {
		p.blanks()
		if made.kind == '{' {
			name, err := p.string()
			if err != nil {
				return err
			}
			if known[name] || len(made.names) < few && slices.Contains(made.names, name) {
				return fmt.Errorf("the name %q comes twice", name)
			}
			if len(made.names) >= few {
				known = noted(known, made.names, name)
			}
			made.names = append(made.names, name)
			p.blanks()
			p.at++ // the colon
		}
		item, err := p.value()
		if err != nil {
			return err
		}
		made.items = append(made.items, item)
	}
	p.depth--
	return nil
}

// Objects of so many members are looked through; larger ones have a table.
const few = 16

func noted(known map[string]bool, names []string, name string) map[string]bool {
	if known == nil {
		known = map[string]bool{}
		for _, name := range names {
			known[name] = true
		}
	}
	known[name] = true
	return known
}

func (p *parser) string() (string, error) {
	p.at++
	from := p.at
	for p.body[p.at] != '"' && p.body[p.at] != '\\' && p.body[p.at] < utf8.RuneSelf {
		p.at++
	}
	if p.body[p.at] == '"' {
		p.at++
		return string(p.body[from : p.at-1]), nil
	}
	out := append([]byte(nil), p.body[from:p.at]...)
	for {
		letter := p.body[p.at]
		switch {
		case letter == '"':
			p.at++
			return string(out), nil
		case letter == '\\':
			var err error
			if out, err = p.escape(out); err != nil {
				return "", err
			}
		case letter < utf8.RuneSelf:
			out = append(out, letter)
			p.at++
		default:
			code, size := utf8.DecodeRune(p.body[p.at:])
			if code == utf8.RuneError && size == 1 {
				return "", fmt.Errorf("a text is not UTF-8, at byte %d", p.at)
			}
			out = utf8.AppendRune(out, code)
			p.at += size
		}
	}
}

var escapes = map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (p *parser) escape(out []byte) ([]byte, error) {
	letter := p.body[p.at+1]
	if letter != 'u' {
		if known, is := escapes[letter]; is {
			letter = known
		}
		p.at += 2
		return append(out, letter), nil
	}
	code := p.hexadecimal()
	if !utf16.IsSurrogate(code) {
		return utf8.AppendRune(out, code), nil
	}
	if p.isState && code >= 0xdc80 && code <= 0xdcff {
		return append(out, byte(code)), nil // a byte that is no text: see escapeBytes
	}
	if code < 0xdc00 && p.at+6 <= len(p.body) && p.body[p.at] == '\\' && p.body[p.at+1] == 'u' {
		if pair := utf16.DecodeRune(code, p.hexadecimal()); pair != utf8.RuneError {
			return utf8.AppendRune(out, pair), nil
		}
	}
	return nil, fmt.Errorf("a text has half a pair of surrogates, U+%04X", code)
}

func (p *parser) hexadecimal() rune {
	code, _ := strconv.ParseUint(string(p.body[p.at+2:p.at+6]), 16, 32)
	p.at += 6
	return rune(code)
}
