package steadfast

import (
	"fmt"
	"os"
	"sync"
)

var closerBegun sync.Once

// Says why this process has no closer, and the effect.
func tellNoCloser(reason error) {
	effect := "the node learns of this program's death later, by 60 to 230 ms for each GiB"
	fmt.Fprintf(os.Stderr, "there is no closer: %v; %s\n", reason, effect)
}
