package steadfast

import (
	"encoding/binary"
	"strings"
	"testing"
)

type tally struct{ Sum uint8 }

func (t *tally) add(n uint8, note *string) uint8 {
	if n == 13 {
		panic("unlucky")
	}
	t.Sum += n
	return t.Sum
}

func tallies() *service {
	return newService("Tally", func() any { return new(tally) }, []Handler{Method("add", (*tally).add, "n", "note")})
}

func call(s *service, method string, flags byte, arguments string) outcome {
	body := binary.LittleEndian.AppendUint32(make([]byte, 32), methodID(method))
	return s.execute(append(append(body, flags, 0, 0, 0), arguments...))
}

func TestArgumentsAreTakenOrRefused(t *testing.T) {
	s := tallies()
	for arguments, refusal := range map[string]byte{
		`[5, null]`: 0, `{"n": 5}`: 0, `{"n": 5, "note": "x"}`: 0, ` [5, "x"] `: 0,
		`[5]`: badArguments, `[null, null]`: badArguments, `{"note": "x"}`: badArguments,
		`[256, null]`: badArguments, `[5, null] 6`: badArguments, `5`: badArguments, ``: badArguments,
		`{"n": 5, "m": 6}`: badArguments, `["5", null]`: badArguments, `[13, null]`: panicked,
	} {
		if done := call(s, "add", 1, arguments); done.refusal != refusal {
			t.Errorf("%s: refusal %d, %s", arguments, done.refusal, done.body)
		}
	}
}

func TestAPanicIsARefusalWithItsFlag(t *testing.T) {
	done := call(tallies(), "add", 1, `[13, null]`)
	if done.outcome != refused || done.refusal != panicked || done.flags != 1 {
		t.Errorf("%+v", done)
	}
}

func TestAnUnreadableStateLeavesTheOldOne(t *testing.T) {
	s := tallies()
	call(s, "add", 1, `[5, null]`)
	for _, state := range []string{"", "{", `{"Sum": 300}`, `{"Sum": 3}}`, `{"Total": 3}`, "\xff"} {
		if s.restore([]byte(state)) == nil || s.state.(*tally).Sum != 5 {
			t.Errorf("%q: %v", state, s.state)
		}
	}
	if err := s.restore([]byte(`{"Sum": 7}`)); err != nil || s.state.(*tally).Sum != 7 {
		t.Error(err, s.state)
	}
}

func TestMistakesInHandlersAreToldAtTheStart(t *testing.T) {
	for _, handler := range []Handler{
		Method("add", (*tally).add, "n"),
		Method("add", func(int) {}, "n"),
		Method("add", 5),
		Method(describe, (*tally).add, "n", "note"),
	} {
		func() {
			defer func() {
				if reason, _ := recover().(string); !strings.HasPrefix(reason, "steadfast: method") {
					t.Errorf("%q", reason)
				}
			}()
			newService("Tally", func() any { return new(tally) }, []Handler{handler})
		}()
	}
}
