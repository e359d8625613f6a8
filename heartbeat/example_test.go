package heartbeat_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/eventseries/eventseries/heartbeat"
)

const first, longest = 5 * time.Minute, 30 * time.Minute

var window = heartbeat.Window{Min: 6 * time.Minute, Max: 36 * time.Minute}

// loop is a series that a writer writes when it begins, now and then while it is ongoing, and
// when it is over.
type loop struct {
	name       string
	count      int
	rhythm     heartbeat.Rhythm
	last       time.Duration // the latest occurrence
	check      time.Duration // when it can be over
	due        time.Duration // the next heartbeat
	heartbeats uint8
}

func (l *loop) occur(now time.Duration) {
	if l.count++; l.count == 1 {
		l.write(now, "begins")
	} else {
		window.Observe(&l.rhythm, now-l.last, now)
	}
	l.last = now
	l.check = window.Due(l.rhythm, l.last, now)
}

// advance does what is due, and reports whether the series is over.
func (l *loop) advance(now time.Duration) (over bool) {
	if now >= l.check {
		if now >= l.last+window.Of(l.rhythm, l.last) {
			l.write(now, "is over")
			return true
		}
		l.check = window.Due(l.rhythm, l.last, now)
	}
	if now >= l.due {
		l.heartbeats++
		l.write(now, "is ongoing")
	}
	return false
}

// write makes a request, and plans the next heartbeat from the time when it was stored. With many series,
// spread those that are due together.
func (l *loop) write(now time.Duration, state string) {
	fmt.Printf("%v: %s %s: %d\n", now, l.name, state, l.count)
	l.due = now + heartbeat.Interval(first, longest, l.heartbeats)
}

// A writer of a few series, which needs no more than a loop. With many, or a server that
// fails, it has to decide which request is next.
func Example() {
	probe, backup := &loop{name: "probe"}, &loop{name: "backup"}
	// A process before this one has found out that the backup occurs each quarter of an hour.
	window.Remember(&backup.rhythm, 32*time.Minute, 0) // as its Event says

	ongoing := []*loop{probe, backup}
	for now := time.Duration(0); len(ongoing) > 0; now += time.Minute { // or sleep until the next due time
		if now <= 90*time.Minute {
			probe.occur(now)
		}
		if now <= time.Hour && now%(15*time.Minute) == 0 {
			backup.occur(now)
		}
		ongoing = slices.DeleteFunc(ongoing, func(l *loop) bool { return l.advance(now) })
	}
	// Output:
	// 0s: probe begins: 1
	// 0s: backup begins: 1
	// 5m0s: probe is ongoing: 6
	// 5m0s: backup is ongoing: 1
	// 10m0s: probe is ongoing: 11
	// 10m0s: backup is ongoing: 1
	// 20m0s: probe is ongoing: 21
	// 20m0s: backup is ongoing: 2
	// 40m0s: probe is ongoing: 41
	// 40m0s: backup is ongoing: 3
	// 1h10m0s: probe is ongoing: 71
	// 1h10m0s: backup is ongoing: 5
	// 1h32m0s: backup is over: 5
	// 1h36m0s: probe is over: 91
}
