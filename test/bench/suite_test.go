package bench

import (
	"flag"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/tracker"
)

var (
	resultsFile = flag.String("suite.results", "", "the file for the results of TestSuite; results of other parts in it remain. If empty, the suite runs with small sizes and discards its results")
	every       = flag.Duration("suite.every", 5*time.Second, "the interval between occurrences of a series in the simulation, in whole seconds: a million series every 5s are 200,000 occurrences per second. Ignored with small sizes")
	nodes       = flag.Int("suite.nodes", 5000, "the number of nodes in the part fleet; ignored with small sizes")
	storyList   = flag.String("suite.stories", "", "a regular expression: the stories to tell in the parts server and fleet; results of others remain")
	partList    = flag.String("suite.parts", strings.Join(allParts(), ","), "the parts of TestSuite to run")
)

var suite = []struct {
	name    string
	measure func(t *testing.T, s size, r *Results)
}{
	{"hot", func(_ *testing.T, s size, r *Results) {
		r.Hot = nil
		for _, form := range Forms {
			for _, related := range []bool{false, true} {
				names := []string{Ours, Floor, FloorClock, ToolsNew, ToolsOld}
				if related {
					names = names[:4] // tools/record has no related objects
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
			if n <= 100_000 { // client-go takes too long to start more
				r.Heap = append(r.Heap, MeasureHeap(ToolsNew, n), MeasureHeap(ToolsOld, n))
			}
		}
	}},
	{"fresh", func(_ *testing.T, s size, r *Results) { r.Fresh = []Fresh{MeasureFresh(s.fresh, s.rounds)} }},
	{"singles", func(t *testing.T, s size, r *Results) {
		r.Singles = []Singles{MeasureSingles(t, s.fresh, s.rounds)}
	}},
	{"flood", func(_ *testing.T, s size, r *Results) {
		r.Flood = nil
		for _, name := range []string{Ours, ToolsNew, ToolsOld} {
			r.Flood = append(r.Flood, MeasureFlood(name, 0, s.floodSeries, s.floodCalls, s.floodRounds, 5*time.Millisecond))
		}
		r.Flood = append(r.Flood, MeasureFlood(Ours, s.floodFull, s.floodSeries, s.floodCalls, s.floodRounds, 5*time.Millisecond))
	}},
	{"loop", func(t *testing.T, s size, r *Results) {
		r.Loop = nil
		for _, updated := range []bool{false, true} {
			for _, name := range []string{Ours, ToolsNew, ToolsOld} {
				r.Loop = append(r.Loop, MeasureLoop(t, name, updated, s.loopEvery, 2*time.Hour))
			}
		}
	}},
	{"slow", func(t *testing.T, _ size, r *Results) {
		r.Slow = nil
		for _, loop := range SlowLoops {
			for _, name := range []string{Ours, ToolsNew, ToolsOld} {
				r.Slow = append(r.Slow, MeasureSlow(t, loop, name, 4*time.Hour))
			}
		}
	}},
	{"start", func(t *testing.T, s size, r *Results) {
		r.Start = []Start{MeasureStart(t, s.startEvents, s.startAdopted, s.startRounds)}
	}},
	{"list", func(t *testing.T, s size, r *Results) { r.List = MeasureList(t, s.listEvents, s.listCPU) }},
	{"server", func(t *testing.T, s size, r *Results) {
		only := regexp.MustCompile(*storyList)
		measured := MeasureServer(t, only, s.storyFactor, s.story, s.idle)
		r.Server = append(slices.DeleteFunc(r.Server, func(old Server) bool { return only.MatchString(old.Story) }), measured...)
	}},
	{"fleet", func(t *testing.T, s size, r *Results) {
		if *storyList == "" || r.Requests.Create == 0 {
			r.Requests = MeasureRequests(t, s.listCPU)
		}
		r.Fleet = MeasureFleet(t, s.fleetNodes, regexp.MustCompile(*storyList), r)
	}},
	{"simulation", func(t *testing.T, s size, r *Results) {
		r.Simulation = nil
		for _, n := range s.series {
			for _, rebuilt := range []bool{false, true} {
				if rebuilt && n > s.maxRebuilt {
					continue
				}
				result := Simulate(t, n, s.simulatedEvery, rebuilt)
				t.Logf("%d series, rebuilt %v: writes per minute %d at most, %.1f on average, took %v",
					n, rebuilt, result.Busiest, result.Mean, result.Wall.Round(time.Second))
				r.Simulation = append(r.Simulation, result)
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

// size is the extent of the measurements.
type size struct {
	rounds                    int
	turn                      time.Duration // approximate CPU time
	series                    []int
	fresh                     int
	floodSeries, floodCalls   int
	floodRounds               int
	floodFull                 int // the default capacity
	loopEvery                 time.Duration
	startEvents, startAdopted int
	startRounds               int
	listEvents                []int
	listCPU                   time.Duration // of each kind of request
	fleetNodes                int
	storyFactor               int           // by which stories are smaller
	story                     time.Duration // of the rounds of a story, if they do not take longer
	idle                      time.Duration
	simulatedEvery            time.Duration // per series
	maxRebuilt                int           // series in a simulation of a restart
}

var (
	// full is for the documentation. Flags set simulatedEvery and fleetNodes.
	full = size{
		rounds: 15, turn: 120 * time.Millisecond, series: []int{1000, 10_000, 100_000, 1_000_000},
		fresh: 20_000, floodSeries: 50_000, floodCalls: 500_000, floodFull: 65_536, floodRounds: 7, loopEvery: time.Second,
		startEvents: 100_000, startAdopted: 10_000, startRounds: 3, listEvents: []int{1000, 20_000, 150_000}, listCPU: 3 * time.Second, storyFactor: 1, story: 2 * time.Minute, idle: 5 * time.Second, maxRebuilt: 100_000,
	}
	// small is for tests of the measurements themselves.
	small = size{
		rounds: 2, turn: 2 * time.Millisecond, series: []int{100, 1000},
		fresh: 2000, floodSeries: 500, floodCalls: 5000, floodFull: 200, floodRounds: 2, loopEvery: 30 * time.Second,
		startEvents: 2000, startAdopted: 200, startRounds: 2, listEvents: []int{1000, 3000}, listCPU: 50 * time.Millisecond, fleetNodes: 20, storyFactor: 500, simulatedEvery: 4 * time.Minute, maxRebuilt: 100,
	}
)

func TestSuite(t *testing.T) {
	file, s := *resultsFile, full
	s.simulatedEvery, s.fleetNodes = *every, *nodes
	if file == "" {
		file, s = filepath.Join(t.TempDir(), "results.json"), small
	}
	wanted := strings.Split(*partList, ",")
	require.Subset(t, allParts(), wanted, "-suite.parts")
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
		})
	}
	results, err := ReadResults(file)
	require.NoError(t, err)
	checkResults(t, &results)
}

// checkResults checks what must hold on any machine.
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
			// Three questions and a list, a create, the start of the series, three
			// heartbeats, possibly one more at the last moment, and the end.
			assert.LessOrEqual(t, l.Requests, 12)
		}
	}
	for _, s := range r.Slow {
		if s.Recorder == Ours {
			assert.Equal(t, []int{1, 1}, []int{s.Events, s.Ongoing}, s.Loop)
			assert.LessOrEqual(t, s.Requests, 4+4+2*int(s.Duration/time.Hour), "questions, a list, and writes to %s", s.Loop)
		}
	}
	for _, s := range r.Singles {
		for i, c := range s.Costs {
			// This recorder asks three times, and lists once.
			assert.InDelta(t, s.Events, s.Sent[i].Requests, 4, "%s: no event is lost or written twice", c.Recorder)
			if c.Recorder != ToolsOld {
				assert.Zero(t, s.Sent[i].Kept, c.Recorder)
			}
		}
	}
	for _, s := range r.Start {
		assert.EqualValues(t, s.Events, s.Rebuild.Restored)
		assert.EqualValues(t, s.Adoption.Series, s.Adoption.Adopted)
		assert.EqualValues(t, s.Events, s.Whole.Restored)
		assert.EqualValues(t, (s.Events+499)/500, s.Whole.Pages)
		// The first page has 500 Events, and tells that the others may have 5000.
		assert.EqualValues(t, 1+(s.Events-500+4999)/5000, s.Rebuild.Pages)
		for _, r := range s.Reads {
			assert.Greater(t, r.Bytes, int64(300*s.Events), r)
		}
		// A create that conflicts, and an empty patch to read the Event.
		assert.EqualValues(t, s.Adoption.Series, s.Adoption.Requests["create, taken"])
		assert.EqualValues(t, s.Adoption.Series, s.Adoption.Requests["look, written"])
	}
	for _, l := range r.List {
		for _, h := range l.Herds {
			processes := h.Processes()
			if h.Unlimited {
				assert.Equal(t, []int{0, 0, processes}, []int{h.Asked, h.Counted, h.Listed})
				continue
			}
			assert.GreaterOrEqual(t, h.Asked+h.Counted, processes)
			if l.Events > (tracker.Options{}).WithDefaults().ListLimit {
				assert.LessOrEqual(t, h.Listed, h.Leaders, "processes that only continue their own series do not list %d Events", l.Events)
			}
		}
	}
	for _, s := range r.Server {
		assert.Zero(t, s.Total().Refused, "%s, %s", s.Story, s.Recorder)
		if s.Recorder == Ours {
			assert.Equal(t, s.Occurrences, s.Counted, s.Story)
			// Each process asks in kube-system, then counts, and then lists.
			assert.LessOrEqual(t, s.Verbs["list"].Requests, 3*s.Processes, s.Story)
		}
	}
	for _, f := range r.Fleet {
		if f.Recorder == Ours {
			assert.Zero(t, f.Lost(), f.Story)
		}
	}
	for _, s := range r.Simulation {
		if !s.Rebuilt {
			assert.GreaterOrEqual(t, sum(s.Writes[:s.Beginning]), 2*s.Series, "a create and a patch per series")
		}
		assert.InEpsilon(t, float64(s.Series)/30, s.Mean, 0.1, "one heartbeat per half hour")
	}
}
