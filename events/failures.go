package events

import (
	"sync"
	"time"

	"github.com/eventseries/eventseries/series"
)

// logInterval is how often a line that could be written for each event is.
const logInterval = time.Minute

// maxDenied bounds how many namespaces are remembered.
const maxDenied = 1000

// failures logs that writing does not work, since when, and when it does again:
// not for each event, but for the whole of it. It may be used concurrently.
type failures struct {
	limit logLimit

	mu     sync.Mutex
	since  time.Time // zero: it works
	logged bool      // that it does not
	denied map[deniedTo]struct{}
}

// deniedTo is what the recorder may not do.
type deniedTo struct{ namespace, verb string }

// note takes in what became of a write.
func (f *failures) note(b *Broadcaster, w *series.Write, v verdict, err error) {
	now := b.clock.Now()
	switch v.outcome {
	case denied:
		f.noteDenied(b, w, err)
	case pushedBack, troubled:
		f.mu.Lock()
		if f.since.IsZero() {
			f.since = now
		}
		since := f.since
		f.mu.Unlock()
		if skipped, ok := f.limit.allow(v.outcome.String(), now); ok {
			f.mu.Lock()
			f.logged = true
			f.mu.Unlock()
			about := []any{"since", since, "tracked", b.Stats().Tracked, "alsoSinceLastLog", skipped}
			if until, _ := b.gate.state(); !until.IsZero() {
				about = append(about, "pausedUntil", until)
			}
			b.logger().Error(err, "Cannot write events, will try again", about...)
		}
	case written:
		f.mu.Lock()
		since, logged := f.since, f.logged
		f.since, f.logged = time.Time{}, false
		f.mu.Unlock()
		// Where writing fails now and then there would be a line for each event
		// otherwise.
		if logged {
			b.logger().Info("Events are written again", "failedFor", now.Sub(since))
		}
	case gone, changed, taken, refused:
		// The server is there and answers. What it says of this Event is not
		// about writing as such.
	}
}

func (f *failures) noteDenied(b *Broadcaster, w *series.Write, err error) {
	namespace, verb := w.Series.Namespace, "patch"
	if w.Creates() {
		verb = "create"
	}
	if f.firstDenial(namespace, verb) {
		b.logger().Error(err, "May not write events, will try again", "namespace", namespace, "verb", verb, "resource", "events.events.k8s.io")
	}
}

// firstDenial reports whether it is news that the recorder may not do something
// in a namespace, or in all if that is empty.
func (f *failures) firstDenial(namespace, verb string) bool {
	to := deniedTo{namespace: namespace, verb: verb}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.denied[to]; known || len(f.denied) >= maxDenied {
		return false
	}
	if f.denied == nil {
		f.denied = make(map[deniedTo]struct{})
	}
	f.denied[to] = struct{}{}
	return true
}
