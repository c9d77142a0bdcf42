package steadfast

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

type guests struct {
	Names map[uint64]name
}

// A name that may have no JSON: calls and merges are undone by states that are kept.
type name string

func (n name) MarshalJSON() ([]byte, error) {
	if n == "nobody" {
		return nil, errors.New("nobody has no name")
	}
	return json.Marshal(string(n))
}

func (n *name) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, (*string)(n)) }

func (g *guests) Merge(other any) error {
	for number, name := range other.(*guests).Names {
		if before, both := g.Names[number]; both && before != name {
			return fmt.Errorf("there are two guests %d", number)
		}
		g.Names[number] = name
		switch name {
		case "Eve":
			panic("Eve is no guest")
		case "late":
			g.Names[number] = "nobody"
		}
	}
	return nil
}

func (g *guests) come(number uint64, who name) { g.Names[number] = who }

func party() *service {
	initial := func() any { return &guests{Names: map[uint64]name{}} }
	return newService("Guests", initial, []Handler{Method("come", (*guests).come, "number", "who")})
}

func TestStatesAreMergedOrAreAsBefore(t *testing.T) {
	s := party()
	if err := s.checkState(); err != nil {
		t.Fatal(err)
	}
	call(s, "come", 1, `[0, "Ada"]`)
	if done := s.merge([]byte(`{"Names":{"0":"Ada","1":"Bob"}}`)); done.outcome != ok || len(done.body) != 0 {
		t.Fatalf("%+v", done)
	}
	for other, said := range map[string]string{
		`{"Names":{"1":"Bob","2":"Eve"}}`: "Eve is no guest", `{"Names":{"0":"Bob"}}`: "there are two guests 0",
		`{"Names":{"2":"late"}}`: "was undone", `{"Names":{"one":"Ada"}}`: "cannot be read", ``: "cannot be read",
	} {
		done := s.merge([]byte(other))
		if done.outcome != refused || done.refusal != panicked || !strings.Contains(string(done.body), said) {
			t.Errorf("%s: %d %s", other, done.outcome, done.body)
		}
		if state, _ := s.snapshot(); string(state) != `{"Names":{"0":"Ada","1":"Bob"}}` {
			t.Errorf("%s: %s", other, state)
		}
	}
}

// The frames that a program writes, when its node writes these and ends.
func written(t *testing.T, s *service, frames ...[]byte) (kinds []byte, bodies [][]byte) {
	if err := s.checkState(); err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	program := &link{socket: theirs, in: bufio.NewReader(theirs), out: bufio.NewWriter(theirs)}
	go func() {
		if err := program.serve(s); err != nil {
			t.Error(err)
		}
		theirs.Close()
	}()
	node := &link{socket: ours, in: bufio.NewReader(ours)}
	go func() { _, _ = ours.Write(bytes.Join(frames, nil)) }()
	for {
		kind, body, err := node.receive()
		if err != nil {
			return kinds, bodies
		}
		kinds, bodies = append(kinds, kind), append(bodies, body)
		if kind == frameState {
			ours.Close()
		}
	}
}

func frame(kind byte, number uint64, rest ...byte) []byte {
	bytes := binary.LittleEndian.AppendUint32(nil, uint32(8+len(rest)))
	return append(binary.LittleEndian.AppendUint64(append(bytes, kind, 0, 0, 0), number), rest...)
}

func TestAHelloSaysWhetherTheServiceMerges(t *testing.T) {
	pid, token := binary.LittleEndian.AppendUint32(nil, uint32(os.Getpid())), bytes.Repeat([]byte{0xab}, 32)
	for _, of := range []struct {
		service           *service
		length, extension string
	}{{tallies(), "\x00\x00", ""}, {party(), "\x05\x00", "\x01"}} {
		expected := "SFAT\x01\x00" + of.length + string(pid) + string(token) + "group" + of.extension
		if told := of.service.hello("group", token); string(told) != expected {
			t.Errorf("%q, not %q", told, expected)
		}
	}
}

func TestAProgramThatMergesTakesPieces(t *testing.T) {
	state := `{"Names":{"7":"Ada"}}`
	piece := func(part string) []byte {
		return frame(frameMerge, 1, append([]byte{byte(len(state)), 0, 0, 0, 0, 0, 0, 0}, part...)...)
	}
	kinds, bodies := written(t, party(), piece(state[:4]), piece(state[4:]),
		frame(frameMerge, 2, make([]byte, 8)...), frame(frameSnapshot, 3))
	if !bytes.Equal(kinds, []byte{frameAnswer, frameAnswer, frameState}) {
		t.Fatal(kinds)
	}
	if !bytes.Equal(bodies[0], []byte{1, 0, 0, 0, 0, 0, 0, 0, ok, 0, 0, 0}) {
		t.Error(bodies[0])
	}
	if bodies[1][8] != refused || string(bodies[2][16:]) != state {
		t.Errorf("%v, %s", bodies[1], bodies[2])
	}
}

func TestAStateThatDoesNotMergeRefuses(t *testing.T) {
	s := tallies()
	for _, done := range []outcome{call(s, "steadfast.merge", 1, "[]"), s.merge([]byte(`{"Sum":1}`))} {
		if done.refusal != noSuchMethod {
			t.Errorf("%+v", done)
		}
	}
}
