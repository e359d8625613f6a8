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
	resultsFile = flag.String("suite.results", "", "the file for the results of TestSuite; results of other parts in it remain. If empty, the suite runs with small sizes and discards its results")
	nodes       = flag.Int("suite.nodes", 5000, "the number of nodes in the part fleet; ignored with small sizes")
	partList    = flag.String("suite.parts", strings.Join(allParts(), ","), "the parts of TestSuite to run")
)

var suite = []struct {
	name    string
	measure func(t *testing.T, s size, r *Results)
}{
	{"hot", func(_ *testing.T, s size, r *Results) {
		r.Hot = nil
		for _, form := range []string{"typed", "Unstructured", "ObjectReference"} {
			for _, related := range []bool{false, true} {
				r.Hot = append(r.Hot, MeasureHot(form, related, s.rounds, s.turn))
			}
		}
	}},
	{"parallel", func(_ *testing.T, s size, r *Results) { r.Parallel = MeasureParallel(s.rounds, s.turn) }},
	{"heap", func(_ *testing.T, s size, r *Results) {
		r.Heap = nil
		for _, n := range s.series {
			for _, name := range Recorders {
				r.Heap = append(r.Heap, MeasureHeap(name, n))
			}
		}
	}},
	{"fresh", func(_ *testing.T, s size, r *Results) { r.Fresh = MeasureFresh(s.fresh, s.rounds) }},
	{"server", func(t *testing.T, s size, r *Results) {
		r.Server = MeasureServer(t, s.serverNodes, s.serverRounds, s.serverStories, s.idle)
	}},
	{"fleet", func(t *testing.T, s size, r *Results) { r.Fleet = MeasureFleet(t, s.fleetNodes) }},
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
	rounds        int
	turn          time.Duration // approximate CPU time
	series        []int
	fresh         int
	serverNodes   int
	serverRounds  int
	serverStories func(story) bool
	idle          time.Duration
	fleetNodes    int
}

var (
	// full is for the documentation. A flag sets fleetNodes.
	full = size{
		rounds: 15, turn: 120 * time.Millisecond, series: []int{1000, 10_000, 100_000}, fresh: 20_000,
		serverNodes: 100, serverRounds: 3, serverStories: func(s story) bool { return s.real }, idle: 5 * time.Second,
	}
	// small is for tests of the measurements themselves.
	small = size{
		rounds: 2, turn: 2 * time.Millisecond, series: []int{300, 1000}, fresh: 2000,
		serverNodes: 1, serverRounds: 1, serverStories: func(s story) bool { return s.name == "Crash loops" }, idle: 200 * time.Millisecond, fleetNodes: 20,
	}
)

func TestSuite(t *testing.T) {
	file, s := *resultsFile, full
	s.fleetNodes = *nodes
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
	for _, l := range r.Fresh.Latency {
		assert.Positive(t, l.Time.Median, l.Recorder)
	}
	for _, h := range slices.Concat(r.Server, r.Fleet) {
		if h.Recorder != Ours {
			continue
		}
		assert.Zero(t, h.Refused, h.Story)
		assert.Zero(t, h.Lost(), h.Story)
		if h.Story == HotLoop {
			// A create, the start of the series, two heartbeats, possibly one more at the last
			// moment, and the end.
			assert.Equal(t, 1, h.Requests["create"], h.Story)
			assert.LessOrEqual(t, h.Requests["patch"], 5, h.Story)
		}
	}
}
