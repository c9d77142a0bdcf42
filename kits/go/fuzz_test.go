package steadfast

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// Any bytes are a state or refused, and a state is given again as it was taken. What callers send is
// read as encoding/json reads it, or refused.
func FuzzStatesAndCalls(f *testing.F) {
	s := outers()
	if err := s.checkState(); err != nil {
		f.Fatal(err)
	}
	initial, _ := s.snapshot()
	for _, seed := range []string{
		string(initial), `{"Mean":"NaN","Text":"\udc83","Bytes":"AA==","Keys":{"-7":[true,false]},"Quoted":"5"}`,
		`[{"$":1,"of":{"a":1}},{"$":1}]`, `["\ud83d\ude00\u00e9",-0,1e-7]`, `{"next":{"$":1,"of":{"next":{"$":1}}}}`, "[\xff]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if s.restore(body) == nil {
			state, err := s.snapshot()
			if err != nil || s.restore(state) != nil {
				t.Fatalf("%q: %v: %q", body, err, state)
			}
			if again, _ := s.snapshot(); !bytes.Equal(state, again) {
				t.Fatalf("%q: %q and then %q", body, state, again)
			}
		}
		n, err := parse(body, false)
		var ours, theirs any
		if err != nil || new(decoder).value(n, reflect.ValueOf(&ours).Elem()) != nil {
			return
		}
		if err := json.Unmarshal(body, &theirs); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		one, errOne := encode(ours, false)
		two, errTwo := json.Marshal(theirs)
		if errOne != nil || errTwo != nil || !bytes.Equal(one, two) {
			t.Fatalf("%q: %q %v, %q %v", body, one, errOne, two, errTwo)
		}
	})
}
