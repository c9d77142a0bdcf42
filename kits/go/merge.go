package steadfast

// Merger is for states that take in the state of the other side of a partition. Other is a pointer
// of the same type. Both have what was called before they parted, and may have one call more: what
// both have counts once. After an error or a panic the state is as before, and the other side's
// calls are told as discarded. The error's text is told as the reason.
type Merger interface {
	Merge(other any) error
}

// Merges the state of another history. The outcome is the same at every replica.
func (s *service) merge(state []byte) outcome {
	merger, merges := s.state.(Merger)
	if !merges {
		return refusal(noSuchMethod, "this service merges no states")
	}
	var before []byte
	var other any
	done := guarded("the states to merge cannot be read", func() (err error) {
		if before, err = s.snapshot(); err == nil {
			other, err = s.readGiven(state)
		}
		return err
	})
	if done.outcome != ok {
		return done
	}
	done = guarded("the states cannot be merged", func() error { return merger.Merge(other) })
	s.keeping.calls++
	if done.outcome == ok {
		err := s.look()
		if err == nil {
			return done
		}
		done = undone(err)
	}
	err := s.undo(before)
	if err == nil {
		err = s.look()
	}
	if err != nil {
		s.fail(err)
	}
	return done
}

// Runs what may fail or panic.
func guarded(words string, run func() error) (done outcome) {
	defer func() {
		if reason := recover(); reason != nil {
			done = refusal(panicked, "%s: %v", words, reason)
			done.flags = 1
		}
	}()
	if err := run(); err != nil {
		return refusal(panicked, "%s: %v", words, err)
	}
	return outcome{ok, 0, 0, nil}
}
