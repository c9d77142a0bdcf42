// A replica with arguments, results and errors of many forms: `steadfast conform` tries the kit
// with it.
package main

import (
	"errors"
	"log"

	steadfast "github.com/steadfast-rs/steadfast/kits/go"
)

// Item is an argument and a part of the state.
type Item struct {
	Name   string            `json:"name"`
	Weight *float64          `json:"weight"`
	Labels map[string]string `json:"labels"`
	Parts  []Item            `json:"parts"`
}

// Store is the state.
type Store struct {
	Items map[string]Item
	Last  uint64
	Notes []string
	Mean  float64
}

func (s *Store) put(item Item) bool {
	_, was := s.Items[item.Name]
	s.Items[item.Name] = item
	return !was
}

func (s *Store) note(context *steadfast.Context, text string, flags [2]bool, level int8) error {
	if level < 0 {
		return errors.New("the level is negative")
	}
	s.Last = context.Now ^ context.Seed
	if flags[0] || flags[1] {
		s.Notes = append(s.Notes, text)
	}
	return nil
}

// Leaves what JSON has not: a cut character and, at first, NaN.
func (s *Store) cut(text string, sum float64, count uint8) uint8 {
	s.Notes = append(s.Notes, text[:min(len(text), 10)])
	s.Mean = sum / float64(count)
	return count
}

func (s *Store) last() uint64 { return s.Last }

func (s *Store) find(name string) (*Item, error) {
	if item, there := s.Items[name]; there {
		return &item, nil
	}
	if name == "" {
		return nil, steadfast.Error{Value: []string{"no name"}}
	}
	return nil, nil
}

func main() {
	initial := func() *Store { return &Store{Items: map[string]Item{}, Notes: []string{}} }
	err := steadfast.Serve("Store", initial,
		steadfast.Method("put", (*Store).put, "item"),
		steadfast.Method("note", (*Store).note, "text", "flags", "level"),
		steadfast.Method("cut", (*Store).cut, "text", "sum", "count"),
		steadfast.Read("last", (*Store).last),
		steadfast.Read("find", (*Store).find, "name"))
	if err != nil {
		log.Fatal(err)
	}
}
