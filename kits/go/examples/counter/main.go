// A replica in Go: a number that is added to.
package main

import (
	"log"

	steadfast "github.com/steadfast-rs/steadfast/kits/go"
)

// Counter is the state: its exported fields, in JSON.
type Counter struct{ Sum uint64 }

func (c *Counter) add(n uint64) (uint64, error) {
	if c.Sum+n < n {
		return 0, steadfast.Error{Value: map[string]uint64{"Overflow": c.Sum}}
	}
	c.Sum += n
	return c.Sum, nil
}

func (c *Counter) get() uint64 { return c.Sum }

func main() {
	err := steadfast.Serve("Counter", func() *Counter { return new(Counter) },
		steadfast.Method("add", (*Counter).add, "n").Docs("Adds n and returns the sum."),
		steadfast.Read("get", (*Counter).get).Docs("The sum."))
	if err != nil {
		log.Fatal(err)
	}
}
