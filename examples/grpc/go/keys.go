package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// window is how many calls are under way in a session.
const window = 64

// Keys gives each call of one channel a key, by which it is executed exactly once: a retry has the
// key of its first attempt, whichever gateway it comes to. docs/gateway.md has the rules of a key.
func Keys() grpc.UnaryClientInterceptor {
	var lock sync.Mutex
	current := newSession()
	return func(
		ctx context.Context, method string, request, reply any,
		channel *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		lock.Lock()
		if current.next-current.oldest() >= window {
			current = newSession()
		}
		session, number := current, current.next
		session.next++
		session.open[number] = true
		unanswered := session.oldest()
		lock.Unlock()
		defer func() {
			lock.Lock()
			delete(session.open, number)
			lock.Unlock()
		}()
		ctx = metadata.AppendToOutgoingContext(ctx,
			"steadfast-session", session.name,
			"steadfast-call", strconv.FormatUint(number, 10),
			"steadfast-unanswered", strconv.FormatUint(unanswered, 10))
		return invoke(ctx, method, request, reply, channel, options...)
	}
}

// session numbers calls from 1. A channel has one, and a further one where more than 64 calls are
// under way.
type session struct {
	name string
	next uint64
	open map[uint64]bool
}

func newSession() *session {
	var bytes [8]byte
	for binary.BigEndian.Uint64(bytes[:]) == 0 {
		rand.Read(bytes[:])
	}
	name := strconv.FormatUint(binary.BigEndian.Uint64(bytes[:]), 16)
	return &session{name: name, next: 1, open: map[uint64]bool{}}
}

func (s *session) oldest() uint64 {
	oldest := s.next
	for number := range s.open {
		oldest = min(oldest, number)
	}
	return oldest
}
