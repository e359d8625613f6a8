package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// summary are the numbers of a run.
type summary struct {
	seed            uint64
	faults, elapsed time.Duration
	schedule        schedule
	lives           map[kind]int // by their end
	accounts        ledger
	events, changes int
	connections     int64
	resets          int64
	differences     int
	regressions     int
}

// String returns a table.
func (s *summary) String() string {
	var text strings.Builder
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(&text, "  %-34s %s\n", name, fmt.Sprintf(format, args...))
	}
	var taken, dropped, low, high int64
	var adopted, restored, requests uint64
	writes := make(map[string]uint64)
	drops := make(map[string]uint64)
	keys, lives := 0, 0
	for _, accounts := range s.accounts {
		lives += len(accounts)
		for key := range keysPerEmitter {
			emitted := false
			for _, a := range accounts {
				l, h, _ := a.bounds(key)
				low, high = low+l, high+h
				emitted = emitted || a.keys[key].taken > 0
			}
			if emitted {
				keys++
			}
		}
		for _, a := range accounts {
			taken += a.taken()
			dropped += a.dropped()
			adopted += a.stats.Adopted
			restored += a.stats.Restored
			for outcome, n := range a.stats.Writes {
				writes[outcome] += n
				requests += n
			}
			for reason, n := range a.stats.Dropped {
				drops[reason] += n
			}
		}
	}
	row("seed", "%d", s.seed)
	row("time with faults, in all", "%v, %v", s.faults, s.elapsed.Round(time.Second))
	row("occurrences, keys", "%d, %d", taken, keys)
	row("emitters, processes", "%d, %d", len(s.accounts), lives)
	counts := s.schedule.count()
	for _, k := range slices.Concat(serverKinds, networkKinds, []kind{pushBack}) {
		row(string(k), "%d", counts[k])
	}
	for _, k := range slices.Sorted(maps.Keys(s.lives)) {
		row(string(k), "%d", s.lives[k])
	}
	row("connections of emitters, reset", "%d, %d", s.connections, s.resets)
	row("requests", "%d", requests)
	for _, outcome := range slices.Sorted(maps.Keys(writes)) {
		row("  "+outcome, "%d", writes[outcome])
	}
	row("series adopted by name, by list", "%d, %d", adopted, restored)
	row("dropped", "%d %v", dropped, drops)
	row("left open by kills and cut-offs", "%d", high-low)
	row("Events, changes seen", "%d, %d", s.events, s.changes)
	row("differences, regressions", "%d, %d", s.differences, s.regressions)
	return text.String()
}
