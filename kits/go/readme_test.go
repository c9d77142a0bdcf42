package steadfast

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// These are the types of the README.

type Bank struct {
	Accounts map[string]Account
	Limit    uint64 `steadfast:"default=1000"` // added: it needs a default, a pointer or omitempty
}

type Account struct {
	Owner   string
	Balance uint64 `steadfast:"was=Amount"` // renamed: states with Amount are read
}

func TestTheReadmeShowsANextVersion(t *testing.T) {
	s := newService("Bank", func() any { return new(Bank) }, nil)
	if err := s.checkState(); err != nil {
		t.Fatal(err)
	}
	err := s.restore([]byte(`{"Accounts": {"1": {"Amount": 5, "Note": "", "Owner": "Ada"}}}`))
	want := &Bank{Accounts: map[string]Account{"1": {Owner: "Ada", Balance: 5}}, Limit: 1000}
	if err != nil || !reflect.DeepEqual(s.state, want) {
		t.Errorf("%v: %+v", err, s.state)
	}
	readme, _ := os.ReadFile("README.md")
	// There, code is indented by spaces.
	source, _ := os.ReadFile("readme_test.go")
	_, rest, _ := strings.Cut(string(readme), "## How the state changes")
	_, rest, _ = strings.Cut(rest, "```go\n")
	code, _, found := strings.Cut(rest, "```")
	if !found || !strings.Contains(string(source), strings.ReplaceAll(code, "\n    ", "\n\t")) {
		t.Errorf("the README has other types:\n%s", code)
	}
}
