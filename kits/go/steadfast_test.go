package steadfast

import (
	"encoding/binary"
	"errors"
	"math"
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

type forms struct{}

func (forms) take(text string, number float64, any any, item map[int8]item) any { return any }

type item struct {
	Name string `json:"name"`
	Size [2]bool
}

func (forms) cut(text string, n int) string { return text[:n] }
func (forms) mean() []float64               { return []float64{math.NaN()} }
func (forms) deep() any {
	var value any
	for range 65 {
		value = []any{value}
	}
	return value
}
func (forms) fails() error { return errors.New("cut \xc3") }

func TestOddTextsNumbersAndNestingAreRefused(t *testing.T) {
	s := newService("Forms", func() any { return new(forms) }, []Handler{
		Method("take", (*forms).take, "text", "number", "any", "item"), Method("cut", (*forms).cut, "text", "n"),
		Method("mean", (*forms).mean), Method("deep", (*forms).deep), Method("fails", (*forms).fails)})
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for arguments, refusal := range map[string]byte{
		`["\ud83d\ude00", 1e3, {"a": [null, true]}, {"-7": {"name": "x", "Size": [true, false]}}]`: 0,
		`["\ud83d", 1, 1, {}]`: badArguments, `["\ud83dx", 1, 1, {}]`: badArguments, `["\udc83", 1, 1, {}]`: badArguments,
		"[\"\xff\", 1, 1, {}]": badArguments, `["", 1e999, 1, {}]`: badArguments,
		`["", 9007199254740993, 1, {}]`: badArguments, `["", 1, 9007199254740993, {}]`: badArguments,
		`["", 1, {"a": 1, "a": 2}, {}]`: badArguments, `["", 1, {"\ud83d": 1}, {}]`: badArguments,
		`["", 1, ` + deep(64) + `, {}]`: badArguments, `["", 1, ` + deep(63) + `, {}]`: 0, `["", -0.0, 1, {}]`: 0,
		`["", 1, ` + deep(496) + `, {}]`: badArguments, `["", 1, ` + deep(50_000) + `, {}]`: badArguments,
		`["", 1, 1, {"7": {"Size": [true, false]}, "07": {}}]`: badArguments, `["", 1, 1, {"128": {}}]`: badArguments,
		`["", 1, 1, {"7": {"nam": "x"}}]`: badArguments, `["", 1, 1, {"7": {"Size": [true]}}]`: badArguments,
		`["", 1, 1, {"7": {"name": null}}]`: badArguments,
	} {
		if done := call(s, "take", 1, arguments); done.refusal != refusal {
			t.Errorf("%.60s: refusal %d, %s", arguments, done.refusal, done.body)
		}
	}
	for method, arguments := range map[string]string{"cut": `["\u00fc", 1]`, "mean": "[]", "deep": "[]", "fails": "[]"} {
		if done := call(s, method, 1, arguments); done.refusal != panicked {
			t.Errorf("%s: %s", method, done.body)
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
