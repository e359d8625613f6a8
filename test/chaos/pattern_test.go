package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPatternIsThatOfItsSeed(t *testing.T) {
	take := func(p *pattern) (all [][]burst) {
		for range 500 {
			all = append(all, p.next())
		}
		return all
	}
	same := take(newPattern(1, 2, 3, 20))
	assert.Equal(t, same, take(newPattern(1, 2, 3, 20)))
	for _, other := range []*pattern{newPattern(2, 2, 3, 20), newPattern(1, 1, 3, 20), newPattern(1, 2, 4, 20)} {
		assert.NotEqual(t, same, take(other))
	}
}

// A series has to go through all its states, and the machine has to bear it.
func TestPatternLoopsAndRests(t *testing.T) {
	p := newPattern(1, 0, 0, keysPerEmitter)
	const minutes = 10
	n := batches(minutes * time.Minute)
	last := make([]int, keysPerEmitter)
	occurrences, breaks, loops := 0, 0, 0
	for i := range n {
		for _, b := range p.next() {
			occurrences += b.Count
			switch gap := i - last[b.Key]; {
			case gap > batches(finishAfter):
				breaks++
			default:
				loops++
			}
			last[b.Key] = i
		}
	}
	perSecond := occurrences / (minutes * 60)
	assert.Greater(t, perSecond, 100)
	assert.Less(t, perSecond, 1000, "the machine has to bear four of these")
	assert.Greater(t, breaks, minutes*keysPerEmitter, "one in a minute a key")
	assert.Greater(t, loops, 10*breaks)
}
