package heartbeat

const (
	// arity is the number of children of a node. Four nodes of 16 bytes are one
	// cache line, so that looking for the earliest child waits for memory once.
	// To take one of a million items and set it anew (BenchmarkPopDue) took
	// 0.8 µs, and 1.6 µs with two children.
	arity = 4
	// root is the index of the first node. It is such that the children of any
	// node start at a multiple of arity and do share a cache line; it took
	// 1.0 µs where they did not. And it is not zero, which in a slot means: not
	// in the queue.
	root = arity - 1
)

// node is a deadline, in nanoseconds after the queue's epoch, and whose it is.
type node[T Item] struct {
	at   int64
	item T
}

// heap is a 4-ary min-heap in which each item knows its index.
//
// container/heap is binary, calls Less and Swap through an interface, swaps
// where it is enough to move, and takes and returns each node as an any: in the
// same benchmark 1.2 µs, and two allocations.
type heap[T Item] struct {
	// The elements before root are padding. They come with the first node.
	nodes array[node[T]]
}

func parent(i int) int     { return i/arity + root - 1 }
func firstChild(i int) int { return arity * (i - root + 1) }

func (h *heap[T]) len() int { return max(0, h.nodes.size-root) }

// first returns the node with the earliest deadline. The heap must not be empty.
func (h *heap[T]) first() node[T] { return *h.nodes.at(root) }

// find returns the index of item, or zero if it is not in the heap.
func (h *heap[T]) find(item T) int {
	i := int(*item.Slot())
	// Without this check an item of another queue would corrupt both silently.
	if i != 0 && (i < root || i >= h.nodes.size || h.nodes.at(i).item != item) {
		panic("heartbeat: item is in another queue, or its slot was written to")
	}
	return i
}

// set inserts n, or gives n.at to the item that is there already.
func (h *heap[T]) set(n node[T]) {
	i := h.find(n.item)
	if i == 0 {
		for h.nodes.size < root {
			h.nodes.push(node[T]{})
		}
		i = h.nodes.size
		h.nodes.push(n)
	}
	h.settle(i, n)
}

// remove takes out the node at index i.
func (h *heap[T]) remove(i int) {
	*h.nodes.at(i).item.Slot() = 0
	last := h.nodes.pop()
	if i < h.nodes.size {
		h.settle(i, last)
	}
}

// settle puts n, which belongs somewhere above or below index i, into its
// place, and moves the nodes on the way by one level. What is at i is
// overwritten.
func (h *heap[T]) settle(i int, n node[T]) {
	for i > root {
		p := parent(i)
		above := *h.nodes.at(p)
		if above.at <= n.at {
			break
		}
		h.put(i, above)
		i = p
	}
	// If n has moved up, it is earlier than all that was below its new place,
	// and the loop ends at once.
	for {
		c := h.earliestChild(i)
		if c == 0 {
			break
		}
		below := *h.nodes.at(c)
		if n.at <= below.at {
			break
		}
		h.put(i, below)
		i = c
	}
	h.put(i, n)
}

// earliestChild returns the index of the child of i with the earliest
// deadline, or zero if i has no children.
func (h *heap[T]) earliestChild(i int) int {
	c := firstChild(i)
	if c >= h.nodes.size {
		return 0
	}
	earliest, at := c, h.nodes.at(c).at
	for end := min(c+arity, h.nodes.size); c < end; c++ {
		if other := h.nodes.at(c).at; other < at {
			earliest, at = c, other
		}
	}
	return earliest
}

// put writes n to index i, and the index to its item.
func (h *heap[T]) put(i int, n node[T]) {
	*h.nodes.at(i) = n
	*n.item.Slot() = int32(i)
}
