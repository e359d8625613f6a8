package tracker

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// An entry is in four cache lines, and counting an occurrence needs two of them: it
// reads the first, which nobody changes, and changes the second.
func TestEntryIsSmall(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("words are of another size")
	}
	var e Entry
	assert.LessOrEqual(t, unsafe.Sizeof(e), uintptr(256))
	assert.LessOrEqual(t, unsafe.Sizeof(e.key), uintptr(cacheLine))
	assert.GreaterOrEqual(t, unsafe.Offsetof(e.tally), uintptr(cacheLine))
	assert.Less(t, unsafe.Offsetof(e.notedAt), uintptr(2*cacheLine))
}
