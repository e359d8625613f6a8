package chaos

import (
	"fmt"
	"time"

	"github.com/eventseries/eventseries/events"
)

// account is what is known of one life of an emitter: the time from the start of
// a process to its end. It is made of the reports. It is not for concurrent use.
type account struct {
	// keys are the sums for each key.
	keys []keyAccount
	// stats are the last that it has reported.
	stats stats
	// ended says that it was shut down and has told all.
	ended bool
	// failures are what it found wrong itself.
	failures []string
	// batches is the number of batches that it has emitted, flushed that of those
	// that are known to be on the server.
	batches, flushed int
	// lasted is how long it lived, as far as it has told.
	lasted time.Duration

	pending []sentBatch // not flushed; the first is flushed+1
}

// keyAccount are the sums for one key in one life.
type keyAccount struct {
	// taken is how many occurrences were to be emitted.
	taken int64
	// flushed is how many of those a Flush has put on the server, or dropped.
	flushed int64
	// sent and acked are how many it has added to each Event, by name: at most, and
	// as far as the server has acknowledged it.
	sent, acked map[string]int64
	// dropped is how many are counted as dropped, and cutOff how many of those
	// because the time for the shutdown was over.
	dropped, cutOff int64
	// begun is how many series can have begun.
	begun int

	lastAt time.Duration // when the latest batch with it began
}

// sentBatch is a batch that may not be on the server.
type sentBatch struct {
	at     time.Duration
	bursts []burst
}

func newAccount(keys int) *account { return &account{keys: make([]keyAccount, keys)} }

// add takes in a report.
func (a *account) add(r report) {
	a.lasted = r.At
	if r.Stats != nil {
		a.stats = *r.Stats
	}
	switch {
	case len(r.Batch) > 0:
		a.sent(r)
	case r.Done:
		a.done(r)
	case r.Flushed:
		for a.flushed < r.Seq {
			for _, b := range a.pending[0].bursts {
				a.keys[b.Key].flushed += int64(b.Count)
			}
			a.pending = a.pending[1:]
			a.flushed++
		}
	case r.Sent != nil:
		a.added(r.Sent, func(k *keyAccount) *map[string]int64 { return &k.sent })
	case r.Acked != nil:
		a.added(r.Acked, func(k *keyAccount) *map[string]int64 { return &k.acked })
	case r.Dropped != nil:
		k := &a.keys[r.Dropped.Key]
		k.dropped += int64(r.Dropped.Count)
		if r.Dropped.Reason == events.DropShutdown {
			k.cutOff += int64(r.Dropped.Count)
		}
	case r.Failed != "":
		a.failures = append(a.failures, r.Failed)
	case r.Ended:
		a.ended = true
	}
}

func (a *account) sent(r report) {
	if a.batches++; r.Seq != a.batches {
		a.failures = append(a.failures, fmt.Sprintf("batch %d is reported as the next after %d", r.Seq, a.batches-1))
	}
	for _, b := range r.Batch {
		a.keys[b.Key].taken += int64(b.Count)
	}
	a.pending = append(a.pending, sentBatch{at: r.At, bursts: r.Batch})
	// Until it is known how long it took, it has to be reckoned with the worst.
	for _, b := range r.Batch {
		a.keys[b.Key].begun += b.Count
	}
}

// done says that the latest batch has been emitted. Only now it is known how long
// a key can have been quiet: from the begin of its last batch to the end of this
// one, at most.
func (a *account) done(r report) {
	batch := a.pending[len(a.pending)-1]
	for _, b := range batch.bursts {
		k := &a.keys[b.Key]
		if r.At-batch.at < finishAfter {
			k.begun -= b.Count
			if k.begun == 0 || r.At-k.lastAt >= finishAfter {
				k.begun++
			}
		}
		k.lastAt = batch.at
	}
}

// added takes in what was sent or acknowledged. Of requests that cross, the one
// with more counts.
func (a *account) added(what *addition, to func(*keyAccount) *map[string]int64) {
	if what.Key < 0 || what.Key >= len(a.keys) || what.Count < 0 {
		a.failures = append(a.failures, fmt.Sprintf("it wrote %+v", *what))
		return
	}
	counts := to(&a.keys[what.Key])
	if *counts == nil {
		*counts = make(map[string]int64)
	}
	(*counts)[what.Event] = max((*counts)[what.Event], what.Count)
}

// sum adds up counts.
func sum(counts map[string]int64) (n int64) {
	for _, count := range counts {
		n += count
	}
	return n
}

// taken returns how many occurrences were to be emitted, of all keys.
func (a *account) taken() (n int64) {
	for _, k := range a.keys {
		n += k.taken
	}
	return n
}

// dropped returns how many occurrences were offered to OnDrop, of all keys.
func (a *account) dropped() (n int64) {
	for _, k := range a.keys {
		n += k.dropped
	}
	return n
}

// String says it in a line.
func (a *account) String() string {
	var low, high int64
	for key := range a.keys {
		l, h, _ := a.bounds(key)
		low, high = low+l, high+h
	}
	end := "was killed"
	if a.ended {
		end = "was shut down"
	}
	return fmt.Sprintf("%s after %.1fs: %d of %d batches flushed; of %d occurrences %d dropped, %d to %d on the server",
		end, a.lasted.Seconds(), a.flushed, a.batches, a.taken(), a.dropped(), low, high)
}

// bounds returns how many occurrences of a key this life has put on the server,
// at least and at most, and in how many Events at most.
func (a *account) bounds(key int) (low, high int64, begun int) {
	k := a.keys[key]
	if a.ended {
		low, high = k.taken-k.dropped, k.taken-k.dropped+k.cutOff
	} else {
		// What it dropped is not known to be among what was not flushed.
		low, high = max(k.flushed-k.dropped, 0), k.taken
	}
	return max(low, sum(k.acked)), min(high, sum(k.sent)), k.begun
}

// check returns what does not add up within this life.
func (a *account) check() []string {
	wrong := a.failures
	for key := range a.keys {
		if low, high, _ := a.bounds(key); low > high {
			wrong = append(wrong, fmt.Sprintf("key %d: at least %d must be on the server, but at most %d can: %+v", key, low, high, a.keys[key]))
		}
	}
	if !a.ended {
		return wrong
	}
	if taken := a.taken(); int64(a.stats.Occurrences) != taken {
		wrong = append(wrong, fmt.Sprintf("%d occurrences were emitted, but Stats has %d", taken, a.stats.Occurrences))
	}
	var dropped uint64
	for _, n := range a.stats.Dropped {
		dropped += n
	}
	if offered := a.dropped(); int64(dropped) != offered {
		wrong = append(wrong, fmt.Sprintf("%d occurrences were offered to OnDrop, but Stats has %v", offered, a.stats.Dropped))
	}
	return wrong
}
