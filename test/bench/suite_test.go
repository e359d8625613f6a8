package bench

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	resultsFile = flag.String("suite.results", "", "the file in which to put the results of TestSuite; where there are some already, those of other parts stay. Empty: the suite is small, and its results are looked at and forgotten")
	every       = flag.Duration("suite.every", 5*time.Second, "how often each series of the simulation occurs, in whole seconds: a million every 5s are 200,000 occurrences a second. The small suite does not ask")
	partList    = flag.String("suite.parts", strings.Join(allParts(), ","), "the parts of TestSuite to run")
)

// part is a part of the suite.
type part struct {
	name    string
	measure func(t *testing.T, s size, r *Results)
}

var suite = []part{
	{"hot", func(_ *testing.T, s size, r *Results) {
		r.Hot = nil
		for _, form := range Forms {
			for _, related := range []bool{false, true} {
				names := []string{Ours, Floor, FloorClock, ToolsNew, ToolsOld}
				if related {
					names = names[:4] // the old one has no related objects
				}
				r.Hot = append(r.Hot, MeasureHot(form, related, names, s.rounds, s.turn))
			}
		}
	}},
	{"parallel", func(_ *testing.T, s size, r *Results) { r.Parallel = MeasureParallel(s.rounds, s.turn) }},
	{"scale", func(_ *testing.T, s size, r *Results) {
		r.Scale = nil
		for _, n := range s.series {
			r.Scale = append(r.Scale, MeasureScale(n, s.rounds, s.turn))
		}
	}},
	{"heap", func(_ *testing.T, s size, r *Results) {
		r.Heap = nil
		for _, n := range s.series {
			r.Heap = append(r.Heap, MeasureHeap(Ours, n))
			if n <= peerSeries {
				r.Heap = append(r.Heap, MeasureHeap(ToolsNew, n), MeasureHeap(ToolsOld, n))
			}
		}
	}},
	{"fresh", func(_ *testing.T, s size, r *Results) { r.Fresh = []Fresh{MeasureFresh(s.fresh, s.rounds)} }},
	{"flood", func(_ *testing.T, s size, r *Results) {
		r.Flood = nil
		for _, name := range []string{Ours, ToolsNew, ToolsOld} {
			r.Flood = append(r.Flood, MeasureFlood(name, s.floodSeries, s.floodCalls, s.rounds, 5*time.Millisecond))
		}
	}},
	{"loop", func(t *testing.T, s size, r *Results) {
		r.Loop = nil
		for _, updated := range []bool{false, true} {
			for _, name := range []string{Ours, ToolsNew, ToolsOld} {
				r.Loop = append(r.Loop, MeasureLoop(t, name, updated, s.loopEvery, 2*time.Hour))
			}
		}
	}},
	{"start", func(t *testing.T, s size, r *Results) {
		r.Start = []Start{MeasureStart(t, s.startEvents, s.startAdopted)}
	}},
	{"simulation", func(t *testing.T, s size, r *Results) {
		r.Simulation = nil
		for _, n := range s.series {
			for _, rebuilt := range []bool{false, true} {
				if rebuilt && n > s.rebuilt {
					continue
				}
				simulated := Simulate(t, s.simulation(n, rebuilt))
				t.Logf("%d series, rebuilt %v: at most %d writes in a minute, %.1f in the mean, %v",
					n, rebuilt, simulated.Busiest, simulated.Mean, simulated.Wall.Round(time.Second))
				r.Simulation = append(r.Simulation, simulated)
			}
		}
	}},
}

func allParts() []string {
	var names []string
	for _, p := range suite {
		names = append(names, p.name)
	}
	return names
}

// peerSeries is up to how many series the memory of peers is measured. It takes them
// long to begin more.
const peerSeries = 100_000

// size is how much is measured.
type size struct {
	rounds                    int
	turn                      time.Duration // CPU of a turn, about
	series                    []int
	fresh                     int
	floodSeries, floodCalls   int
	loopEvery                 time.Duration
	startEvents, startAdopted int
	simulatedEvery            time.Duration // for a series
	rebuilt                   int           // the most series that are simulated being rebuilt
}

func (s size) simulation(series int, rebuilt bool) SimulationOptions {
	return SimulationOptions{Series: series, Every: s.simulatedEvery, Duration: 3 * time.Hour, Emitters: 2, Rebuilt: rebuilt}
}

var (
	// whole is what the documentation has, with simulatedEvery from the flag.
	whole = size{
		rounds: DefaultRounds, turn: 250 * time.Millisecond, series: []int{1000, 10_000, 100_000, 1_000_000},
		fresh: 20_000, floodSeries: 50_000, floodCalls: 500_000, loopEvery: time.Second,
		startEvents: 100_000, startAdopted: 10_000, rebuilt: 100_000,
	}
	// small is enough to see that everything works.
	small = size{
		rounds: 2, turn: 2 * time.Millisecond, series: []int{100, 1000},
		fresh: 2000, floodSeries: 500, floodCalls: 5000, loopEvery: 30 * time.Second,
		startEvents: 2000, startAdopted: 200, simulatedEvery: 4 * time.Minute, rebuilt: 100,
	}
)

func TestSuite(t *testing.T) {
	file, s := *resultsFile, whole
	s.simulatedEvery = *every
	if file == "" {
		file, s = filepath.Join(t.TempDir(), "results.json"), small
	}
	wanted := strings.Split(*partList, ",")
	for _, name := range wanted {
		require.Contains(t, allParts(), name, "-suite.parts")
	}
	for _, p := range suite {
		if !slices.Contains(wanted, p.name) {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			results, err := ReadResults(file)
			require.NoError(t, err)
			run, begin := StartRun(), time.Now()
			p.measure(t, s, &results)
			run.Took = time.Since(begin)
			results.Runs[p.name] = run
			require.NoError(t, results.Write(file))
			t.Logf("measured in %v", run.Took.Round(time.Millisecond))
		})
	}
	results, err := ReadResults(file)
	require.NoError(t, err)
	checkResults(t, &results)
}

// checkResults looks for what cannot be, whatever the machine.
func checkResults(t *testing.T, r *Results) {
	t.Helper()
	for _, h := range r.Hot {
		for _, c := range h.Costs {
			assert.Positive(t, c.CPU.Median, c.Recorder)
		}
	}
	for _, h := range r.Heap {
		if h.Recorder != ToolsOld {
			assert.Equal(t, h.Series, h.Tracked, h.Recorder)
		}
	}
	for _, l := range r.Loop {
		if l.Recorder == Ours {
			// A list, a create, a series, three heartbeats, at most one more if it comes
			// in the last moment, and the end.
			assert.LessOrEqual(t, l.Requests, 9)
		}
	}
	for _, s := range r.Start {
		assert.EqualValues(t, s.Events, s.Rebuild.Restored)
		assert.EqualValues(t, s.Adoption.Series, s.Adoption.Adopted)
		assert.EqualValues(t, (s.Events+499)/500, s.Rebuild.Pages)
		// A create that finds something, and a look at it.
		assert.EqualValues(t, s.Adoption.Series, s.Adoption.Requests["create, taken"])
		assert.EqualValues(t, s.Adoption.Series, s.Adoption.Requests["look, written"])
	}
	for _, s := range r.Simulation {
		if !s.Rebuilt {
			begun := 0
			for _, n := range s.Writes[:s.Beginning] {
				begun += n
			}
			assert.GreaterOrEqual(t, begun, 2*s.Series, "a create, and what makes it a series")
		}
		// A heartbeat for each series in half an hour.
		assert.InEpsilon(t, float64(s.Series)/30, s.Mean, 0.1)
	}
}
