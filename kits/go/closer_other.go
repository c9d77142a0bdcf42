//go:build !linux || !amd64

package steadfast

import (
	"fmt"
	"runtime"
)

// A death is noticed when the kernel has freed the memory.
func beginCloser() {
	closerBegun.Do(func() {
		tellNoCloser(fmt.Errorf("this kit has none for %s on %s", runtime.GOOS, runtime.GOARCH))
	})
}
