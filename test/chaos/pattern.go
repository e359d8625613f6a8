package chaos

import (
	"math/rand/v2"
	"time"
)

// tick is the time from one batch of an emitter to the next.
const tick = 50 * time.Millisecond

// burst is how often a key occurs in a batch.
type burst struct {
	Key   int `json:"k"`
	Count int `json:"n"`
}

// pattern says what an emitter emits. Each key on its own is in a loop for a
// while, slow or hot, and then quiet, often for long enough that its series ends.
// It reads no clock; it goes by the batch.
type pattern struct {
	rng  *rand.Rand
	keys []phase
}

// phase is what a key is doing.
type phase struct {
	left  int // batches until the next phase
	loops bool
	every int // batches from one burst to the next
	count int // in a burst
}

// newPattern makes the pattern of one life of an emitter.
func newPattern(seed uint64, emitter, life, keys int) *pattern {
	p := &pattern{
		rng:  rand.New(rand.NewPCG(seed, uint64(1000*(emitter+1)+life))),
		keys: make([]phase, keys),
	}
	for i := range p.keys {
		// Half of them go on with what the life before has left.
		if p.rng.IntN(2) == 0 {
			p.keys[i] = p.draw(true)
		} else {
			p.keys[i] = phase{left: p.rng.IntN(batches(finishAfter))}
		}
	}
	return p
}

// batches is how many there are in a time.
func batches(d time.Duration) int { return int(d / tick) }

// next returns what is in the next batch.
func (p *pattern) next() []burst {
	var batch []burst
	for key := range p.keys {
		k := &p.keys[key]
		if k.left == 0 {
			*k = p.draw(!k.loops)
		}
		k.left--
		if k.loops && k.left%k.every == 0 {
			batch = append(batch, burst{Key: key, Count: k.count})
		}
	}
	return batch
}

// draw begins a phase.
func (p *pattern) draw(loops bool) phase {
	if !loops {
		return phase{left: 1 + p.rng.IntN(3*batches(finishAfter))}
	}
	k := phase{left: 1 + p.rng.IntN(5*batches(finishAfter)), loops: true, count: 1}
	switch p.rng.IntN(10) {
	case 0, 1, 2: // once
		k.left = 1
		k.every = 1
	case 3, 4, 5: // a slow loop
		k.every = 5 + p.rng.IntN(batches(finishAfter))
	case 6, 7, 8: // a loop
		k.every = 1 + p.rng.IntN(10)
		k.count = 1 + p.rng.IntN(3)
	default: // a hot one
		k.every = 1
		k.count = 1 + p.rng.IntN(10)
	}
	return k
}
