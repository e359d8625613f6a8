package bench

import (
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventseries/eventseries/events"
)

// Simulation is the result of Simulate.
type Simulation struct {
	Series      int           `json:"series"`
	Duration    time.Duration `json:"duration"`
	Rebuilt     bool          `json:"rebuilt"`
	Occurrences int64         `json:"occurrences"`
	Writes      []int         `json:"writes"`    // in each minute
	Mean        float64       `json:"mean"`      // of Writes over the whole half hours after the first one
	Busiest     int           `json:"busiest"`   // maximum of Writes after minute Beginning
	Beginning   int           `json:"beginning"` // minutes that Steady, Emitting and Between exclude
	Steady      int64         `json:"steady"`    // occurrences
	Emitting    time.Duration `json:"emitting"`  // CPU time of Eventf
	Between     time.Duration `json:"between"`   // CPU time of everything else: deadlines and writes
	Wall        time.Duration `json:"wall"`      // real time of the simulation
	Heap        int64         `json:"heap"`      // bytes of the recorder at the end
	Peak        uint64        `json:"peak"`      // maximum bytes of the process, with garbage and emitters
}

const (
	simulatedTime     = 3 * time.Hour // virtual
	simulatedEmitters = 2             // goroutines
	heartbeatMinutes  = 30            // the heartbeat interval of the recorder
	rebuildAfter      = 10 * time.Minute
	beginning         = time.Minute // until all series have begun
)

// Simulate runs a recorder with default options and a sink in memory in virtual time.
// Each series occurs at the given interval, in whole seconds. Every virtual second, the
// emitters emit as fast as they can. If rebuilt is true, Simulate kills the first process
// and simulates the process that replaces it.
//
// Minute 0 is the start of the recorder, or of the replacement. The beginning lasts
// until each series has occurred twice. A replacement has no beginning.
func Simulate(t *testing.T, series int, every time.Duration, rebuilt bool) Simulation {
	t.Helper()
	begin := time.Now()
	s := &simulation{
		Simulation: Simulation{Series: series, Duration: simulatedTime, Rebuilt: rebuilt},
		subjects:   references(series),
		every:      int(every / time.Second),
	}
	synctest.Test(t, func(*testing.T) {
		to := newMinuteSink(rebuilt)
		s.start(to)
		s.beginAll()
		remaining := simulatedTime
		if rebuilt {
			s.seconds(rebuildAfter - beginning)
			// The snapshot does not include the shutdown of the first process.
			to = to.snapshot()
			s.recorder.close()
			s.reset()
			s.Occurrences = 0
			s.start(to)
		} else {
			s.Beginning = int(math.Ceil((beginning + every).Minutes()))
			begun := time.Duration(s.Beginning) * time.Minute
			s.seconds(begun - beginning)
			s.reset()
			remaining -= begun
		}
		s.seconds(remaining)
		heap := liveHeap()
		s.recorder.close()
		s.recorder = nil
		s.Heap = heap - liveHeap()
		s.Writes = to.perMinute(simulatedTime) // last, so that both heaps include the sink
	})
	s.Wall = time.Since(begin)
	s.summarize()
	return s.Simulation
}

// summarize computes Mean and Busiest from Writes.
func (r *Simulation) summarize() {
	r.Busiest = slices.Max(r.Writes[r.Beginning:])
	steady := r.Writes[heartbeatMinutes:]
	// Only whole intervals: the position of heartbeats within them does not matter.
	steady = steady[:len(steady)/heartbeatMinutes*heartbeatMinutes]
	r.Mean = float64(sum(steady)) / float64(len(steady))
}

func sum(counts []int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

type simulation struct {
	Simulation
	subjects []subject
	every    int // seconds between occurrences of a series
	recorder *ours
	next     int // index of the next subject
}

// start starts a recorder and waits until it has listed the Events on the server.
func (s *simulation) start(to events.EventSink) {
	// A list fills at most half of the table.
	s.recorder = newOurs(to, events.Options{Capacity: 2 * (len(s.subjects) + 1), ListLimit: -1})
	s.recorder.list()
	synctest.Wait()
}

// beginAll emits the first event of each series, evenly over the beginning.
func (s *simulation) beginAll() {
	n, seconds := len(s.subjects), int(beginning/time.Second)
	for i := range seconds {
		s.second((i+1)*n/seconds - i*n/seconds)
	}
}

// seconds lets time pass while the series occur.
func (s *simulation) seconds(d time.Duration) {
	n := len(s.subjects)
	for i := range int(d / time.Second) {
		k := i % s.every
		s.second((k+1)*n/s.every - k*n/s.every)
		if i%60 == 0 {
			s.Peak = max(s.Peak, heapNow())
		}
	}
}

// second emits n events and lets a second pass.
func (s *simulation) second(n int) {
	begin := cpuTime()
	var emitters sync.WaitGroup
	for i := range simulatedEmitters {
		from, to := i*n/simulatedEmitters, (i+1)*n/simulatedEmitters
		emitters.Go(func() {
			at := (s.next + from) % len(s.subjects)
			for range to - from {
				s.recorder.eventf(&s.subjects[at])
				at = (at + 1) % len(s.subjects)
			}
		})
	}
	emitters.Wait()
	s.next = (s.next + n) % len(s.subjects)
	s.Occurrences += int64(n)
	s.Steady += int64(n)
	emitted := cpuTime()
	time.Sleep(time.Second) // the recorder does everything else now
	s.Emitting += emitted - begin
	s.Between += cpuTime() - emitted
}

// reset discards the usage so far.
func (s *simulation) reset() { s.Steady, s.Emitting, s.Between, s.Peak = 0, 0, 0, 0 }
