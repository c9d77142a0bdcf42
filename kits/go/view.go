package steadfast

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
)

// View is the nodes of a group's replicas.
type View struct {
	Number  uint64   // one more than the last view's
	Members []uint32 // whose replicas have the state, in order of rank: the first is the primary's
	Joining []uint32 // whose replicas are being given the state
}

// Joined are the nodes whose replicas have the state and had not in the view before.
func (v View) Joined(before View) []uint32 { return without(v.Members, before.Members) }

// Left are the nodes whose replicas had the state in the view before, and have not now.
func (v View) Left(before View) []uint32 { return without(before.Members, v.Members) }

func without(all, others []uint32) (left []uint32) {
	for _, node := range all {
		if !slices.Contains(others, node) {
			left = append(left, node)
		}
	}
	return left
}

// Viewer is for states that are told of their group's views, among the calls. A replica may miss
// views between which there is no call: the state may depend on the newest alone.
type Viewer interface {
	View(View)
}

func (s *service) view(body []byte) error {
	if len(body) < 16 || len(body) != 16+4*(int(body[8])+int(body[9])) {
		return fmt.Errorf("the node's frame of kind %d with %d bytes is malformed", frameView, len(body))
	}
	viewer, wants := s.state.(Viewer)
	if !wants {
		return nil
	}
	var nodes []uint32
	for rest := body[16:]; len(rest) > 0; rest = rest[4:] {
		nodes = append(nodes, binary.LittleEndian.Uint32(rest))
	}
	members := int(body[8])
	view := View{binary.LittleEndian.Uint64(body), nodes[:members:members], nodes[members:]}
	func() {
		// Nobody waits for an answer. It fails alike at every replica.
		defer func() {
			if failed := recover(); failed != nil {
				fmt.Fprintf(os.Stderr, "the state failed at view %d: %v\n", view.Number, failed)
			}
		}()
		viewer.View(view)
	}()
	s.keeping.calls++
	if err := s.look(); err != nil {
		s.fail(err)
	}
	return nil
}
