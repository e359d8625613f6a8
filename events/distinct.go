package events

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
)

// MaxDistinct is the limit of [Stats].DistinctReasons and [Stats].DistinctActions.
const MaxDistinct = 1000

// distinct counts different words, up to MaxDistinct. It can be used concurrently.
type distinct struct {
	mu   sync.Mutex
	seen sets.Set[string]
}

func (d *distinct) add(word string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = sets.New[string]()
	}
	if d.seen.Len() < MaxDistinct {
		d.seen.Insert(word)
	}
}

func (d *distinct) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.seen)
}
