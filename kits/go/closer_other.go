//go:build !linux || !amd64

package steadfast

// No closer for this processor yet: a death is noticed when the kernel has freed the memory.
func beginCloser() {}
