package steadfast

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Mean  float64
	Text  string
	Bytes []byte
	Keys  map[int8][2]bool
}

type Outer struct {
	inner
	Next    *Outer `json:"next,omitempty"`
	Level   int    `json:",omitempty"`
	Quoted  uint64 `json:",string"`
	Names   map[string]inner
	When    time.Time
	Large   *big.Int
	Ignored func() `json:"-"`
	Items   []json.Number
}

func outers() *service {
	// What the initial state has, and a later one has not, must not come back.
	initial := func() any { return &Outer{Level: 5, Names: map[string]inner{"initial": {}}} }
	return newService("Outer", initial, nil)
}

func TestStatesComeBackAsTheyWere(t *testing.T) {
	s, other := outers(), outers()
	if err := s.checkState(); err != nil {
		t.Fatal(err)
	}
	odd := inner{math.NaN(), "cut \xc3", nil, map[int8][2]bool{-7: {true, false}}}
	*s.state.(*Outer) = Outer{
		inner: odd, Next: &Outer{Level: -1, Quoted: math.MaxUint64, Items: []json.Number{"1.50"}},
		Names: map[string]inner{"\xff\u00fc": {Mean: math.Inf(-1), Text: "\u2028<\U0001f600", Bytes: []byte{0, 255}}},
		When:  time.Unix(5, 7).UTC(), Large: new(big.Int).Lsh(big.NewInt(1), 200),
	}
	state, err := s.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.restore(state); err != nil {
		t.Fatalf("%v: %s", err, state)
	}
	got, want := other.state.(*Outer), s.state.(*Outer)
	if !math.IsNaN(got.Mean) {
		t.Error(got.Mean)
	}
	got.Mean, want.Mean = 0, 0
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\n%+v", got, want)
	}
}

func TestStatesOfEarlierKitsAreRead(t *testing.T) {
	old := Outer{inner: inner{1.5e-9, "<\u2028>", []byte("x"), nil}, Next: &Outer{}, Quoted: 7, Items: []json.Number{"3"}}
	state, _ := json.Marshal(&old)
	s := outers()
	if err := s.restore(state); err != nil || !reflect.DeepEqual(s.state, &old) {
		t.Errorf("%v: %s\n%+v", err, state, s.state)
	}
}

type hidden struct{ Seen, sum uint64 }
type within struct{ Parts []hidden }
type open struct{ Any any }
type Inner inner
type wrapped struct{ *Inner }
type pair struct {
	A int `json:"x"`
	B int `steadfast:"was=x"`
}
type oneWay struct{ N int }

func (oneWay) MarshalJSON() ([]byte, error) { return []byte("5"), nil }

type lost struct{ C chan int }
type keyed struct{ M map[float64]int }
type wrongDefault struct {
	N int `steadfast:"default=five"`
}

func refusedState[S any](t *testing.T, said string) {
	t.Helper()
	err := newService("S", func() any { return new(S) }, nil).checkState()
	if err == nil || !strings.Contains(err.Error(), said) {
		t.Errorf("%v, and not %q", err, said)
	}
}

func TestStatesThatJSONWouldLoseAreRefusedAtTheStart(t *testing.T) {
	refusedState[hidden](t, "steadfast.hidden.sum is not exported: JSON would lose it")
	refusedState[within](t, "steadfast.within.Parts.sum is not exported")
	refusedState[open](t, "steadfast.open.Any is an interface")
	refusedState[wrapped](t, "wrapped.Inner is an embedded pointer")
	refusedState[pair](t, `two fields have the name "x"`)
	refusedState[oneWay](t, "writes JSON of its own or reads it, and not both")
	refusedState[lost](t, "steadfast.lost.C: JSON has no chan int")
	refusedState[keyed](t, "JSON has no keys of type float64")
	refusedState[wrongDefault](t, "N: its default")
}

type first struct {
	Amount, Unused uint64
	Parts          []struct{ A, B int8 }
}
type second struct {
	Parts   []struct{ B, A int8 }
	Balance uint64  `json:"balance" steadfast:"was=Amount,was=Sum"`
	Credit  uint64  `steadfast:"default=7"`
	Note    *string `json:"note"`
}

func TestFieldsAreAddedReorderedRemovedAndRenamed(t *testing.T) {
	former := newService("S", func() any { return &first{5, 6, []struct{ A, B int8 }{{1, 2}}} }, nil)
	state, err := former.snapshot()
	s := newService("S", func() any { return new(second) }, nil)
	if err != nil || s.restore(state) != nil {
		t.Fatal(err, s.restore(state))
	}
	if want := (&second{[]struct{ B, A int8 }{{2, 1}}, 5, 7, nil}); !reflect.DeepEqual(s.state, want) {
		t.Errorf("%+v", s.state)
	}
	if told := s.keeping.notices; len(told) != 1 || told[0] != (notice{noticeDropped, "`second.Unused`"}) {
		t.Errorf("%+v", told)
	}
	for state, said := range map[string]string{
		`{"Parts": []}`:                                 "cannot read the state: field `balance` of steadfast.second is missing, and has no default",
		`{"Parts": [{"A": 1}], "balance": 1}`:           "field `Parts`: field `B` of ",
		`{"Parts": [], "balance": -1}`:                  "field `balance`: -1 is no uint64",
		`{"Parts": [], "balance": 1, "Credit": "5"}`:    "field `Credit`: a text is no uint64",
		`{"Parts": [], "balance": 1, "Amount": 2}`:      "field `balance` comes twice",
		`{"Parts": [], "balance": 1, "balance": 2}`:     `the name "balance" comes twice`,
		`{"Parts": [], "balance": 1, "Credit": null}`:   "field `Credit`: null is no uint64",
		`{"Parts": null, "balance": 1, "note": "\ud8"}`: "no JSON",
	} {
		if err := s.restore([]byte(state)); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%s: %v", state, err)
		}
	}
}

type chain struct {
	When time.Time
	Next *chain
}

func (c *chain) grow(years int) int {
	c.When = c.When.AddDate(years, 0, 0)
	return c.When.Year()
}

func (c *chain) wind() { c.Next = c }

func TestACallWhoseStateCannotBeGivenIsUndoneAndRefused(t *testing.T) {
	s := newService("Chain", func() any { return new(chain) },
		[]Handler{Method("grow", (*chain).grow, "years"), Method("wind", (*chain).wind)})
	if err := s.checkState(); err != nil {
		t.Fatal(err)
	}
	if done := call(s, "grow", 1, "[5]"); done.outcome != ok {
		t.Fatalf("%s", done.body)
	}
	for method, arguments := range map[string]string{"grow": "[10000]", "wind": "[]"} {
		done := call(s, method, 1, arguments)
		if done.refusal != panicked || done.flags != 1 || !strings.Contains(string(done.body), "undone") {
			t.Errorf("%+v %s", done, done.body)
		}
		if c := s.state.(*chain); c.When.Year() != 6 || c.Next != nil {
			t.Errorf("%+v", c)
		}
	}
}

type sharing struct {
	All      map[string]*inner
	Last     *inner
	One, Two map[string]int
	Counts   []map[string]int
	None     *struct{}
}

func (s *sharing) open() {
	s.Last = &inner{Text: "x"}
	s.All = map[string]*inner{"a": s.Last, "$": s.Last, "other": {}}
	s.One = map[string]int{"$": 1, "of": 2}
	s.Two, s.Counts = s.One, []map[string]int{s.One, {}}
}

func (s *sharing) pay(n int) {
	s.Last.Mean += float64(n)
	s.Two["n"] += n
}

func TestAValueInSeveralPlacesComesBackAsOne(t *testing.T) {
	fresh := func() *service {
		return newService("Sharing", func() any { return new(sharing) },
			[]Handler{Method("open", (*sharing).open), Method("pay", (*sharing).pay, "n")})
	}
	first, second := fresh(), fresh()
	if err := first.checkState(); err != nil {
		t.Fatal(err)
	}
	call(first, "open", 1, "[]")
	state, err := first.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := second.restore(state); err != nil {
		t.Fatalf("%v: %s", err, state)
	}
	call(first, "pay", 1, "[5]")
	call(second, "pay", 1, "[5]")
	if s := second.state.(*sharing); !reflect.DeepEqual(s, first.state) || s.All["$"].Mean != 5 || s.Counts[0]["n"] != 5 {
		t.Errorf("%+v", s)
	}
}

type owned struct{ fails bool }

func (o *owned) Snapshot() ([]byte, error) {
	if o.fails {
		return nil, errors.New("it has no form")
	}
	return []byte("x"), nil
}
func (o *owned) Restore([]byte) error { return nil }

func TestTheNodeIsToldOnceThatAStateCannotBeGiven(t *testing.T) {
	s := newService("Owned", func() any { return new(owned) }, []Handler{Method("fail", func(o *owned) { o.fails = true })})
	if err := s.checkState(); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for range 100 {
		call(s, "fail", 1, "[]")
		if s.isTrialDue() {
			s.tryState()
			tried++
		}
	}
	if told := s.keeping.notices; tried < 7 || len(told) != 1 || told[0] != (notice{noticeFault, "it has no form"}) {
		t.Error(tried, s.keeping.notices)
	}
	s.state.(*owned).fails = false
	if s.tryState(); s.keeping.notices[1] != (notice{noticeWell, ""}) {
		t.Error(s.keeping.notices)
	}
}

// A digest does not depend on the order of a set, and there is none where labels have numbers.
func TestDigest(t *testing.T) {
	type state struct{ Notes []string }
	made := func(notes ...string) *service {
		return newService("digests", func() any { return &state{notes} }, nil)
	}
	one, ok := made("a", "b").digest()
	other, _ := made("b", "a").digest()
	third, _ := made("b", "c").digest()
	if !ok || one != other || one == third || form() == 0 {
		t.Error(ok, one, other, third, form())
	}
	large := made(strings.Repeat("x", triedState))
	if _, ok := large.digest(); ok {
		t.Error("a large state has a digest")
	}
}
