package bench

import (
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventseries/eventseries/events"
)

// SimulationOptions say what is simulated. All must be set, but for Rebuilt.
type SimulationOptions struct {
	// Series is how many go on.
	Series int
	// Every is how often each occurs: whole seconds.
	Every time.Duration
	// Duration is how long it is looked at.
	Duration time.Duration
	// Emitters is how many goroutines emit.
	Emitters int
	// Rebuilt has the process killed when its series are ten minutes old, and looks at
	// the one that is started then.
	Rebuilt bool
}

// Simulation is what became of it.
type Simulation struct {
	Series      int           `json:"series"`
	Duration    time.Duration `json:"duration"`
	Rebuilt     bool          `json:"rebuilt"`
	Occurrences int64         `json:"occurrences"`
	// Writes is how many writes there were in each minute.
	Writes []int `json:"writes"`
	// Mean is that of the minutes after the first 30, as many whole half hours of
	// them as there are; Busiest the most of any minute after the Beginning.
	Mean      float64 `json:"mean"`
	Busiest   int     `json:"busiest"`
	Beginning int     `json:"beginning"`
	// Emitting is the CPU of Eventf for Steady occurrences, Between that of all else
	// in that time: deadlines and writes. The beginning is not in it. Wall is what
	// the whole took.
	Steady   int64         `json:"steady"`
	Emitting time.Duration `json:"emitting"`
	Between  time.Duration `json:"between"`
	Wall     time.Duration `json:"wall"`
	// Heap is what the recorder held in the end, in bytes; Peak the most that there
	// was in all, garbage and the emitters' objects included.
	Heap int64  `json:"heap"`
	Peak uint64 `json:"peak"`
}

// Minutes of a simulation.
const (
	heartbeatMinutes = 30 // from one heartbeat of the recorder to the next
	rebuildMinute    = 10 // at which the first process is killed, if it is
)

// Simulate has the recorder, as it is, follow series in virtual time, with a sink in
// memory. All series begin within a minute; in a simulation of a restart their
// recorder is cut off from the server then, and another one finds them by listing.
// Events are emitted once in a second of virtual time, as fast as the emitters can.
//
// Minute 0 is that of the start, or of the restart. The beginning, which has the
// creates and the writes that make series of them, ends when all have occurred twice;
// after a restart there is none.
func Simulate(t *testing.T, opts SimulationOptions) Simulation {
	t.Helper()
	begin := time.Now()
	result := Simulation{Series: opts.Series, Duration: opts.Duration, Rebuilt: opts.Rebuilt}
	s := &simulation{opts: opts, subjects: references(opts.Series)}
	before := liveHeap()
	synctest.Test(t, func(*testing.T) {
		to := newMinutes(opts.Rebuilt)
		if opts.Rebuilt {
			s.beginBefore(to)
			before = liveHeap()
			s.follow(to)
			s.seconds(opts.Duration)
		} else {
			s.follow(to)
			s.beginAll()
			// The last series has begun, and has to occur once more to be one.
			result.Beginning = int(math.Ceil((beginning + opts.Every).Minutes()))
			begun := time.Duration(result.Beginning) * time.Minute
			s.seconds(begun - beginning)
			s.forget()
			s.seconds(opts.Duration - begun)
		}
		result.Heap = liveHeap() - before
		result.Writes = to.all(opts.Duration)
		s.recorder.close()
	})
	result.Occurrences, result.Steady = s.emitted, s.steady
	result.Emitting, result.Between, result.Peak = s.emitting, s.between, s.peak
	result.Wall = time.Since(begin)
	result.summarize()
	runtime.KeepAlive(s)
	return result
}

// summarize fills in what follows from the writes.
func (r *Simulation) summarize() {
	r.Busiest = slices.Max(r.Writes[r.Beginning:])
	steady := r.Writes[heartbeatMinutes:]
	// Whole intervals, so that it does not matter where in them the heartbeats are.
	steady = steady[:len(steady)/heartbeatMinutes*heartbeatMinutes]
	sum := 0
	for _, n := range steady {
		sum += n
	}
	r.Mean = float64(sum) / float64(len(steady))
}

// beginning is how long it takes until all series have begun.
const beginning = time.Minute

// simulation is one that is under way.
type simulation struct {
	opts     SimulationOptions
	subjects []subject
	recorder *ours

	place             int // of the next occurrence among the subjects
	emitted, steady   int64
	emitting, between time.Duration
	peak              uint64
}

// follow starts a recorder that follows what is emitted from now on.
func (s *simulation) follow(to events.EventSink) {
	s.recorder = newOurs(to, events.Options{Capacity: s.opts.Series})
	synctest.Wait() // it has listed what there is
}

// beginBefore has another process begin the series and end without a word.
func (s *simulation) beginBefore(to *minutes) {
	first := &severable{minutes: to}
	s.follow(first)
	s.beginAll()
	s.seconds(rebuildMinute*time.Minute - beginning)
	first.severed.Store(true)
	s.recorder.close()
	s.recorder = nil
	s.forget()
	s.emitted = 0
	to.restart()
}

// beginAll has each series begin within a minute.
func (s *simulation) beginAll() {
	n, seconds := s.opts.Series, int(beginning/time.Second)
	for i := range seconds {
		s.second((i+1)*n/seconds - i*n/seconds)
	}
}

// seconds lets time pass, in which each series goes on.
func (s *simulation) seconds(d time.Duration) {
	n, every := s.opts.Series, int(s.opts.Every/time.Second)
	for i := range int(d / time.Second) {
		k := i % every
		s.second((k+1)*n/every - k*n/every)
		if i%60 == 0 {
			s.look()
		}
	}
}

// second emits n events and lets a second pass.
func (s *simulation) second(n int) {
	begin := cpuTime()
	var emitters sync.WaitGroup
	for i := range s.opts.Emitters {
		from, to := i*n/s.opts.Emitters, (i+1)*n/s.opts.Emitters
		emitters.Go(func() {
			at := (s.place + from) % s.opts.Series
			for range to - from {
				s.recorder.eventf(&s.subjects[at])
				at = (at + 1) % s.opts.Series
			}
		})
	}
	emitters.Wait()
	s.place = (s.place + n) % s.opts.Series
	s.emitted += int64(n)
	s.steady += int64(n)
	emitted := cpuTime()
	time.Sleep(time.Second) // in which all else is done
	s.emitting += emitted - begin
	s.between += cpuTime() - emitted
}

// look samples the heap.
func (s *simulation) look() {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	s.peak = max(s.peak, heap[0].Value.Uint64())
}

// forget forgets what was used so far.
func (s *simulation) forget() { s.steady, s.emitting, s.between, s.peak = 0, 0, 0, 0 }
