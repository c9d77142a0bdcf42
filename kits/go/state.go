package steadfast

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Codes of a notice to the node.
const (
	noticeFault, noticeWell, noticeDropped = 1, 2, 3
)

const (
	// A state whose type does not tell that it can be written is tried after each call, up to so
	// many bytes: that follows from the state alone, so that all replicas refuse the same calls.
	smallState = 16 << 10
	// A larger one is tried now and then, up to so many bytes. That only tells the node.
	triedState = 1 << 20
	// Between two trials, and how much longer than the trial itself that is.
	pause, pauseIll = time.Minute, time.Second
	share, shareIll = 1000, 100
)

var errLarge = errors.New("the state is large")

type notice struct {
	code byte
	text string
}

// What is known of the state.
type keeping struct {
	needsLook bool   // its type does not tell that it can be written
	good      []byte // the last small state, to which a call is undone
	fault     string
	notices   []notice
	size      int // of the last snapshot
	calls     uint64
	next      uint64
	tried     uint64
	due       time.Time
}

// Refuses a service whose state would be lost, before anything is served.
func (s *service) checkState() error {
	of := reflect.TypeOf(s.state)
	if _, own := s.state.(Snapshotter); !own {
		if err := checkState(of.Elem()); err != nil {
			return fmt.Errorf("the state %v cannot be kept: %w", of.Elem(), err)
		}
		s.keeping.needsLook = isUncertain(of.Elem(), nil)
	}
	s.keeping.next = 1
	if err := s.readBack(); err != nil {
		return fmt.Errorf("the initial state %v cannot be kept: %w", of.Elem(), err)
	}
	return s.look()
}

// Whether a value of the type may have no JSON: by methods of its own, or because it is endless.
func isUncertain(of reflect.Type, above []reflect.Type) bool {
	for _, one := range above {
		if one == of {
			return true
		}
	}
	if ownJSON(of) {
		return true
	}
	above = append(above, of)
	switch of.Kind() {
	case reflect.Map:
		return has(of.Key(), textMarshaler) && of.Key().Kind() != reflect.String || isUncertain(of.Elem(), above)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return isUncertain(of.Elem(), above)
	case reflect.Struct:
		for _, its := range fieldsOf(of) {
			if isUncertain(its.of, above) {
				return true
			}
		}
	}
	return false
}

// Executes a call, and undoes it if its state cannot be given to other replicas.
func (s *service) execute(body []byte) outcome {
	done, changes := s.run(body)
	if !changes {
		return done
	}
	s.keeping.calls++
	good := s.keeping.good
	err := s.look()
	if err == nil {
		return done
	}
	if good == nil { // it was large before: nothing is there to go back to
		s.fail(err)
		return done
	}
	if again := s.undo(good); again != nil {
		s.fail(again)
		return done
	}
	s.keeping.good = good
	return undone(err)
}

func undone(err error) outcome {
	done := refusal(panicked, "the call was undone, since its state could not be given to other replicas: %v", err)
	done.flags = 1
	return done
}

// Keeps a small state as the good one, and refuses one that cannot be written.
func (s *service) look() error {
	s.keeping.good = nil
	if !s.keeping.needsLook {
		return nil
	}
	small, err := encodeAtMost(s.state, true, smallState)
	if errors.Is(err, errLarge) {
		return nil
	}
	if err == nil {
		err = s.returns(small)
	}
	if err == nil {
		s.keeping.good = small
	}
	return err
}

func (s *service) snapshot() ([]byte, error) {
	state, err := s.write(s.state)
	if err != nil {
		s.fail(err)
	}
	s.keeping.size = len(state)
	return state, err
}

func (s *service) write(state any) ([]byte, error) {
	if own, is := state.(Snapshotter); is {
		return own.Snapshot()
	}
	return encode(state, true)
}

// Takes a state on. An unreadable one leaves the old one as it is.
func (s *service) restore(state []byte) error {
	fresh, err := s.readGiven(state)
	if err != nil {
		return fmt.Errorf("cannot read the state: %w", err)
	}
	s.state = fresh
	s.keeping.calls++
	if err := s.look(); err != nil {
		s.fail(err)
	}
	return nil
}

// Reads another replica's state, and tells the node which of its fields are dropped.
func (s *service) readGiven(state []byte) (any, error) {
	var dropped []string
	fresh, err := s.read(state, &dropped)
	if len(dropped) > 0 {
		s.notice(noticeDropped, "`"+strings.Join(dropped, "`, `")+"`")
	}
	return fresh, err
}

// Goes back to an earlier state.
func (s *service) undo(before []byte) error {
	fresh, err := s.read(before, nil)
	if err == nil {
		s.state = fresh
	}
	return err
}

func (s *service) read(state []byte, dropped *[]string) (any, error) {
	fresh := s.initial()
	if own, is := fresh.(Snapshotter); is {
		return fresh, own.Restore(state)
	}
	n, err := parse(state, true)
	if err != nil {
		return nil, err
	}
	d := &decoder{isState: true, isLabelled: bytes.Contains(state, []byte(`{"$":`))}
	if err := d.value(n, reflect.ValueOf(fresh).Elem()); err != nil {
		return nil, err
	}
	if dropped != nil {
		*dropped = d.dropped
	}
	return fresh, nil
}

func (s *service) reset() {
	s.state = s.initial()
	_ = s.look() // it was tried at the start
}

func (s *service) notice(code byte, text string) {
	s.keeping.notices = append(s.keeping.notices, notice{code, text})
}

func (s *service) fail(err error) {
	if reason := err.Error(); reason != s.keeping.fault {
		s.keeping.fault = reason
		s.notice(noticeFault, reason)
	}
}

// Writes the state, reads it back and writes it again.
func (s *service) readBack() error {
	state, err := s.write(s.state)
	if err != nil {
		return err
	}
	if s.keeping.size = len(state); len(state) > triedState {
		return nil
	}
	return s.returns(state)
}

// Reads a written state, and writes it again.
func (s *service) returns(state []byte) error {
	fresh, err := s.read(state, nil)
	if err != nil {
		return fmt.Errorf("what is written cannot be read: %w", err)
	}
	again, err := s.write(fresh)
	if err == nil && !bytes.Equal(state, again) {
		err = fmt.Errorf("what is written is not what is read back: %s", difference(state, again))
	}
	return err
}

// Where two states differ.
func difference(state, again []byte) string {
	alike := 0
	for alike < len(state) && alike < len(again) && state[alike] == again[alike] {
		alike++
	}
	from := max(0, alike-20)
	return fmt.Sprintf("%q, and then %q", state[from:min(len(state), alike+20)], again[from:min(len(again), alike+20)])
}

// The state is tried after calls 1, 2, 4, 8 and so on, and then once a minute at most.
func (s *service) isTrialDue() bool {
	k := &s.keeping
	return k.calls != k.tried && k.size <= triedState && (k.calls >= k.next || time.Now().After(k.due))
}

func (s *service) tryState() {
	k := &s.keeping
	began := time.Now()
	least, times := pause, time.Duration(share)
	if err := s.readBack(); err != nil {
		s.fail(err)
		least, times = pauseIll, shareIll
	} else if k.fault != "" {
		k.fault = ""
		s.notice(noticeWell, "")
	}
	now := time.Now()
	k.due = now.Add(max(least, times*now.Sub(began)))
	for k.tried = k.calls; k.next <= k.calls; {
		k.next *= 2
	}
}
