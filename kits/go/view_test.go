package steadfast

import (
	"reflect"
	"testing"
)

type crew struct {
	Nodes []uint32
}

func (c *crew) View(view View) {
	if view.Number == 0 {
		panic("no view has this number")
	}
	c.Nodes = view.Members
}

func TestAStateIsToldOfViews(t *testing.T) {
	s := newService("Crew", func() any { return &crew{} }, nil)
	body := []byte{9, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}
	if err := s.view(body); err != nil {
		t.Fatal(err)
	}
	if nodes := s.state.(*crew).Nodes; !reflect.DeepEqual(nodes, []uint32{3, 1}) {
		t.Fatalf("members %v", nodes)
	}
	if err := s.view(body[:20]); err == nil {
		t.Fatal("a view that lacks a node was taken")
	}
	body[0] = 0
	if err := s.view(body); err != nil || len(s.state.(*crew).Nodes) != 2 {
		t.Fatalf("a panic of the state: %v", err)
	}
	view, before := View{Members: []uint32{2, 3}}, View{Members: []uint32{1, 2}}
	if joined, left := view.Joined(before), view.Left(before); joined[0] != 3 || left[0] != 1 {
		t.Fatalf("joined %v, left %v", joined, left)
	}
}
