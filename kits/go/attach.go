package steadfast

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// Frames of the protocol.
const (
	frameHello, frameWelcome, frameExecute, frameSnapshot, frameRestore, frameReset = 1, 2, 3, 4, 5, 6
	frameAnswer, frameState, frameFailed, frameRestored, frameFarewell              = 7, 8, 9, 10, 11
	firstOptional                                                                   = 128 // these are skipped if unknown
	frameNotice, frameCompare, frameDigest, frameView, frameMerge                   = 128, 129, 130, 131, 132
)

// The extension of a Hello: the service merges histories that have parted.
const helloMerges = 1

// Limits of the protocol, in bytes.
const (
	maxBody  = 1 << 20
	maxFrame = maxBody + 4096
	piece    = 256 << 10
	maxState = 2 << 30
)

// Serve serves a replica until its node needs it no more. The function makes the initial state: at
// the start, and whenever the replica begins anew. Serve returns an error if no node has started
// the program, or the connection is not as it should be.
func Serve[S any](name string, initial func() *S, handlers ...Handler) error {
	service := newService(name, func() any { return initial() }, handlers)
	if err := service.checkState(); err != nil {
		return err
	}
	node, err := attach(service)
	if err != nil {
		return err
	}
	defer node.socket.Close()
	return node.serve(service)
}

// The connection to the node.
type link struct {
	socket   net.Conn
	in       *bufio.Reader
	out      *bufio.Writer
	begins   *os.File // where the node looks for the command that was begun
	arriving []byte   // the pieces of a state so far
}

func attach(service *service) (*link, error) {
	path, group := os.Getenv("STEADFAST_ATTACH"), os.Getenv("STEADFAST_GROUP")
	token, err := hex.DecodeString(os.Getenv("STEADFAST_TOKEN"))
	if path == "" || err != nil || len(token) != 32 {
		return nil, fmt.Errorf("a node starts this program: steadfast run --group NAME -- %s", os.Args[0])
	}
	socket, err := net.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("the node cannot be reached: %w", err)
	}
	beginCloser()
	node := &link{socket: socket, in: bufio.NewReaderSize(socket, 64<<10), out: bufio.NewWriterSize(socket, 64<<10)}
	if begins := os.Getenv("STEADFAST_BEGINS"); begins != "" {
		// Without the file all unanswered calls are blamed if this program dies: it serves anyway.
		node.begins, _ = os.OpenFile(begins, os.O_WRONLY, 0)
	}
	node.begin(0)
	node.send(frameHello, service.hello(group, token))
	if err := node.out.Flush(); err != nil {
		return nil, err
	}
	kind, body, err := node.receive()
	if err != nil {
		return nil, err
	}
	if kind != frameWelcome || len(body) < 8 || body[0] != 1 {
		return nil, fmt.Errorf("the node does not let this program in: %q", body)
	}
	return node, nil
}

func (s *service) hello(group string, token []byte) []byte {
	body := binary.LittleEndian.AppendUint32([]byte("SFAT\x01\x00\x00\x00"), uint32(os.Getpid()))
	body = append(append(body, token...), group...)
	if _, merges := s.state.(Merger); merges {
		// The group's length says where the extension begins.
		binary.LittleEndian.PutUint16(body[6:], uint16(len(group)))
		body = append(body, helloMerges)
	}
	return body
}

// A number that cannot be written is no number: the node then blames all unanswered calls.
func (n *link) begin(number uint64) {
	if n.begins == nil {
		return
	}
	if _, err := n.begins.WriteAt(binary.LittleEndian.AppendUint64(nil, number), 0); err != nil {
		_ = n.begins.Truncate(0)
	}
}

// Errors of the writer stay until the next Flush.
func (n *link) send(kind byte, parts ...[]byte) {
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	header := binary.LittleEndian.AppendUint32(nil, uint32(length))
	_, _ = n.out.Write(append(header, kind, 0, 0, 0))
	for _, part := range parts {
		_, _ = n.out.Write(part)
	}
}

func (n *link) receive() (kind byte, body []byte, err error) {
	var header [8]byte
	if _, err := io.ReadFull(n.in, header[:]); err != nil {
		return 0, nil, err
	}
	length, kind := binary.LittleEndian.Uint32(header[:]), header[4]
	if length > maxFrame || header[5]|header[6]|header[7] != 0 {
		return 0, nil, fmt.Errorf("the node's frame of kind %d with %d bytes is malformed", kind, length)
	}
	body = make([]byte, length)
	if _, err := io.ReadFull(n.in, body); err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return kind, body, nil
}

// Executes commands in order, and sends answers when no further command is here.
func (n *link) serve(service *service) error {
	for {
		for _, told := range service.keeping.notices {
			n.send(frameNotice, []byte{told.code, 0, 0, 0, 0, 0, 0, 0}, cut(told.text))
		}
		service.keeping.notices = nil
		if n.in.Buffered() == 0 {
			if err := n.out.Flush(); err != nil {
				return err
			}
		}
		kind, body, err := n.receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if kind == frameFarewell {
			if len(body) > 0 {
				return fmt.Errorf("the node says: %s", body)
			}
			return nil
		}
		if err := n.handle(service, kind, body); err != nil {
			return err
		}
	}
}

// The least bytes of the commands with a number.
var least = map[byte]int{frameExecute: 48, frameSnapshot: 8, frameRestore: 16, frameMerge: 16}

func (n *link) handle(service *service, kind byte, body []byte) error {
	if kind == frameReset {
		service.reset()
		return nil
	}
	if kind == frameCompare && len(body) == 8 {
		if value, ok := service.digest(); ok {
			told := binary.LittleEndian.AppendUint64(nil, form())
			n.send(frameDigest, body, binary.LittleEndian.AppendUint64(told, value))
		}
		return nil
	}
	if kind == frameView {
		return service.view(body)
	}
	shortest, known := least[kind]
	if !known && kind >= firstOptional {
		return nil
	}
	if !known || len(body) < shortest {
		return fmt.Errorf("the node's frame of kind %d with %d bytes is malformed", kind, len(body))
	}
	number := body[:8]
	n.begin(binary.LittleEndian.Uint64(number))
	switch kind {
	case frameExecute:
		return n.answer(service, number, service.execute(body[8:]))
	case frameSnapshot:
		n.giveState(service, number)
	case frameRestore, frameMerge:
		whole, err := n.takePiece(binary.LittleEndian.Uint64(body[8:]), body[16:])
		if err != nil || !whole {
			return err
		}
		state := n.arriving
		n.arriving = nil
		if kind == frameMerge {
			return n.answer(service, number, service.merge(state))
		}
		n.restore(service, number, state)
	}
	return nil
}

func (n *link) answer(service *service, number []byte, done outcome) error {
	n.send(frameAnswer, number, []byte{done.outcome, done.refusal, done.flags, 0}, done.body)
	if service.isTrialDue() {
		// No caller waits for it.
		if err := n.out.Flush(); err != nil {
			return err
		}
		service.tryState()
	}
	return nil
}

func (n *link) giveState(service *service, number []byte) {
	bytes, err := service.snapshot()
	if err == nil && len(bytes) > maxState {
		err = fmt.Errorf("the state has %d bytes, at most %d are taken", len(bytes), maxState)
	}
	if err != nil {
		n.send(frameFailed, number, cut(err.Error()))
		return
	}
	total := binary.LittleEndian.AppendUint64(nil, uint64(len(bytes)))
	for {
		part := bytes[:min(len(bytes), piece)]
		n.send(frameState, number, total, part)
		if bytes = bytes[len(part):]; len(bytes) == 0 {
			return
		}
	}
}

// It says whether the state is whole now.
func (n *link) takePiece(total uint64, part []byte) (bool, error) {
	n.arriving = append(n.arriving, part...)
	there := uint64(len(n.arriving))
	if there > total || total > maxState {
		return false, fmt.Errorf("the node's state has %d bytes of %d", there, total)
	}
	return there == total, nil
}

func (n *link) restore(service *service, number, state []byte) {
	if err := service.restore(state); err != nil {
		n.send(frameFailed, number, cut(err.Error()))
	} else {
		n.send(frameRestored, number)
	}
}
