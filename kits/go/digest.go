package steadfast

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"io"
	"os"
	"sync"
)

// Names this build of the program: its size, and its beginning, which has the sizes of its parts and
// the name of the build. Another one may write the same state otherwise, so their digests are not
// compared. 0: it cannot be told.
var form = sync.OnceValue(func() uint64 {
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		return 0
	}
	defer file.Close()
	its, err := file.Stat()
	if err != nil {
		return 0
	}
	hash := fnv.New64a()
	_ = binary.Write(hash, binary.LittleEndian, its.Size())
	if _, err := io.CopyN(hash, file, 4096); err != nil {
		return 0
	}
	return hash.Sum64()
})

// A digest of a small state, for a comparison of the replicas: of how often it has each byte, since a
// set or a map has no order. There is none if labels number what stands in several places.
func (s *service) digest() (value uint64, ok bool) {
	if s.keeping.size > triedState {
		return 0, false
	}
	state, err := s.write(s.state)
	if err != nil || len(state) > triedState || bytes.Contains(state, []byte(`{"$":`)) {
		return 0, false
	}
	var counts [256]uint64
	for _, b := range state {
		counts[b]++
	}
	hash := fnv.New64a()
	_ = binary.Write(hash, binary.LittleEndian, counts)
	return hash.Sum64(), form() != 0
}
