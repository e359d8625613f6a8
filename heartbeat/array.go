package heartbeat

const (
	// chunk is the number of elements that an array allocates at once. For
	// nodes of 16 bytes that is 64 KiB, which the runtime aligns to a page.
	chunk = 4096
	// firstRoom is the number of elements that the first chunk begins with, so
	// that a small queue is small. It doubles until it has reached chunk.
	firstRoom = 16
)

// array is a list that grows and shrinks at its end, in chunks, and moves none
// but the first. A slice that grows by append was measured to
// stop for 15 to 60 ms now and then on its way to a million nodes, and to
// allocate 88 bytes for each node of 16; the array allocates 16.2.
type array[E any] struct {
	// All but the last two chunks are full. The last is empty, or full up to
	// size; in the former case the one before it is the one that is in use.
	chunks [][]E
	size   int
}

// at returns a pointer to element i, which must be less than size. It is valid
// until the element is removed or, in the first chunk, until the next push.
func (a *array[E]) at(i int) *E {
	// Unsigned, because the compiler then makes a shift and a mask of it.
	return &a.chunks[uint(i)/chunk][uint(i)%chunk]
}

// push appends e.
func (a *array[E]) push(e E) {
	c := a.size / chunk
	switch {
	case c == len(a.chunks):
		room := chunk
		if c == 0 {
			room = firstRoom
		}
		a.chunks = append(a.chunks, make([]E, 0, room))
	case len(a.chunks[c]) == cap(a.chunks[c]):
		// Only the first chunk can be too small. Append would not stop at the
		// size of a chunk.
		a.chunks[c] = append(make([]E, 0, 2*cap(a.chunks[c])), a.chunks[c]...)
	}
	a.chunks[c] = append(a.chunks[c], e)
	a.size++
}

// pop removes the last element and returns it.
func (a *array[E]) pop() E {
	a.size--
	c, i := a.size/chunk, a.size%chunk
	e := *a.at(a.size)
	// Otherwise the array would keep alive what e points to.
	clear(a.chunks[c][i:])
	a.chunks[c] = a.chunks[c][:i]
	// An empty chunk is kept until the one before it is half empty, so that a
	// size that goes to and fro across the border does not allocate each time.
	if c+1 < len(a.chunks) && i <= chunk/2 {
		a.chunks[c+1] = nil
		a.chunks = a.chunks[:c+1]
	}
	return e
}
