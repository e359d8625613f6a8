package bench

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

// SlowLoops are the names of the loops that [MeasureSlow] measures, in package workload.
var SlowLoops = []string{"workqueue", "10 minutes"}

// Slow is what a recorder sends for a loop that is slower than a usual one, and what users
// see when it has run for a while.
type Slow struct {
	Loop        string        `json:"loop"` // its name in package workload
	Recorder    string        `json:"recorder"`
	Duration    time.Duration `json:"duration"`
	Occurrences int           `json:"occurrences"`
	Requests    int           `json:"requests"`
	Bytes       int           `json:"bytes"`   // of all request bodies
	Events      int           `json:"events"`  // that were created
	Largest     int           `json:"largest"` // count of an Event
	Ongoing     int           `json:"ongoing"` // Events that say Ongoing
}

// MeasureSlow records a loop of package workload in virtual time, with the recorder's own
// sink and a real clientset. Events do not expire.
func MeasureSlow(t *testing.T, name, recorder string, duration time.Duration) Slow {
	t.Helper()
	loops := workload.Loops()
	loop := loops[slices.IndexFunc(loops, func(l workload.Loop) bool { return l.Name == name })]
	s := Slow{Loop: name, Recorder: recorder, Duration: duration}
	synctest.Test(t, func(*testing.T) {
		w := &wire{began: time.Now(), events: make(map[string][]byte)}
		r := newProgram(recorder, clientsOf(w), events.Options{})
		about := newSubject("typed", false, 1)
		occur := func(time.Duration) {
			r.eventf(&about)
			s.Occurrences++
		}
		loop.Play(duration, 1, duration, time.Sleep, occur, func(time.Duration) {})
		synctest.Wait()
		s.count(w)
		r.close()
	})
	return s
}

// count computes the results from what the server knows.
func (s *Slow) count(w *wire) {
	for _, r := range w.sent() {
		s.Requests++
		s.Bytes += r.body
	}
	for _, body := range w.events {
		var event struct {
			Metadata struct{ Labels map[string]string }
			Count    int
			Series   struct{ Count int }
		}
		must(json.Unmarshal(body, &event))
		s.Events++
		s.Largest = max(s.Largest, event.Count, event.Series.Count, 1)
		if event.Metadata.Labels[series.LabelState] == series.Ongoing.String() {
			s.Ongoing++
		}
	}
}
