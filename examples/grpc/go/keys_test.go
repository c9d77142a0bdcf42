package main

import (
	"context"
	"strconv"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

type key struct{ session, call, unanswered string }

// begin begins a call, which ends when `within` has returned.
func begin(t *testing.T, keys grpc.UnaryClientInterceptor, within func(key)) {
	t.Helper()
	invoke := func(
		ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption,
	) error {
		sent, _ := metadata.FromOutgoingContext(ctx)
		one := func(part string) string { return sent.Get("steadfast-" + part)[0] }
		within(key{one("session"), one("call"), one("unanswered")})
		return nil
	}
	if err := keys(context.Background(), "/counter/add", nil, nil, nil, invoke); err != nil {
		t.Fatal(err)
	}
}

func TestCallsAreNumberedFrom1(t *testing.T) {
	keys := Keys()
	begin(t, keys, func(first key) {
		if number, err := strconv.ParseUint(first.session, 16, 64); err != nil || number == 0 {
			t.Errorf("session %q", first.session)
		}
		if first.call != "1" || first.unanswered != "1" {
			t.Errorf("the first call has %v", first)
		}
		begin(t, keys, func(second key) {
			if want := (key{first.session, "2", "1"}); second != want {
				t.Errorf("%v, and not %v", second, want)
			}
		})
	})
	begin(t, keys, func(third key) {
		if third.call != "3" || third.unanswered != "3" {
			t.Errorf("the third call has %v", third)
		}
	})
}

func TestAFurtherSessionFrom64CallsOn(t *testing.T) {
	keys := Keys()
	var all []key
	var nest func()
	nest = func() {
		if len(all) < 66 {
			begin(t, keys, func(one key) {
				all = append(all, one)
				nest()
			})
		}
	}
	nest()
	if all[63] != (key{all[0].session, "64", "1"}) {
		t.Errorf("the last call of the window has %v", all[63])
	}
	if all[64].session == all[0].session || all[65] != (key{all[64].session, "2", "1"}) {
		t.Errorf("the first calls beyond the window have %v", all[64:])
	}
}
