package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/test/bench"
)

func TestDocumentationIsUpToDate(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "docs")
	files, err := report(filepath.Join(docs, "benchmarks", "results.json"))
	require.NoError(t, err)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(docs, filepath.FromSlash(name)))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s: run make report", name)
	}
}

func TestGoalsReportMisses(t *testing.T) {
	cpu := func(ours, other float64) bench.Costs {
		return bench.Costs{
			{Recorder: bench.Ours, CPU: bench.Spread{Median: ours}, Ratio: bench.Spread{Median: 1}},
			{Recorder: bench.Floor, CPU: bench.Spread{Median: other}, Ratio: bench.Spread{Median: other / ours}},
		}
	}
	r := &bench.Results{
		Hot: []bench.Hot{{Costs: append(cpu(200, 80),
			bench.Cost{Recorder: bench.FloorClock, Ratio: bench.Spread{Median: 1 / 1.16}},
			bench.Cost{Recorder: bench.ToolsNew, Ratio: bench.Spread{Median: 25}},
			bench.Cost{Recorder: bench.ToolsOld, Ratio: bench.Spread{Median: 99}},
		)}},
		Parallel: []bench.Parallel{{Recorder: bench.Ours, Different: bench.Spread{Median: 1.69}, Same: bench.Spread{Median: 1}}},
		Heap:     []bench.Heap{{Recorder: bench.Ours, Series: 100_000, Shared: 351}, {Recorder: bench.ToolsNew, Series: 100_000, Shared: 9}},
		Scale: []bench.Scale{
			{Series: 10_000, Hot: cpu(100, 1), RoundRobin: cpu(100, 1), Random: cpu(100, 1)},
			{Series: 1_000_000, Hot: cpu(110, 2), RoundRobin: cpu(200, 2), Random: cpu(201, 2)},
		},
		Simulation: []bench.Simulation{{Series: pictured, Mean: 10, Busiest: 15}, {Series: 10, Mean: 1, Busiest: 9}},
		Start: []bench.Start{{
			Reads:   []bench.Read{{Wall: 1}},
			Rebuild: bench.Rebuild{Restored: 1, Wall: 1, CPU: 2, Allocated: 1, Peak: 11, Heap: 10},
			Whole:   bench.Rebuild{Restored: 1, Wall: 4, CPU: 7, Allocated: 4, Peak: 14, Heap: 10},
		}},
		Flood: []bench.Flood{{Recorder: bench.Ours, P999: bench.Spread{Max: 1e6}}},
	}
	var holds []bool
	for _, g := range goals(r) {
		t.Log(g)
		holds = append(holds, g.Holds)
	}
	// Allocations, tools/events, tools/record, the floor with the time; different and same series;
	// heap, writes, scale, restart, flood.
	assert.Equal(t, []bool{true, true, false, false, false, true, false, true, true, true, false, true, false, true, false, true, false}, holds)
	assert.Empty(t, goals(&bench.Results{}))
}

func TestGoalsOfStories(t *testing.T) {
	cost := func(story, recorder string, cpu time.Duration, requests, counted int, stored int64) bench.Server {
		return bench.Server{
			Story: story, Recorder: recorder, Occurrences: 100, Counted: counted, Events: 1, Stored: stored,
			Verbs: map[string]bench.Traffic{"create": {Requests: requests}}, Used: bench.ServerUsage{CPU: cpu, PutBytes: float64(stored)},
		}
	}
	r := &bench.Results{Server: []bench.Server{
		cost("Hot loop", bench.Ours, 1, 9, 100, 9),
		cost("Hot loop", bench.ToolsNew, 2, 20, 100, 10),
		cost("Hot loop", bench.ToolsOld, 3, 10, 50, 20),
		cost("Rollout", bench.Ours, 1, 10, 100, 157),
		cost("Rollout", bench.ToolsNew, 2, 20, 100, 200),
		cost("Rollout", bench.ToolsOld, 3, 10, 50, 100),
		cost("unfinished", bench.Ours, 1, 1, 1, 1),
	}}
	assert.Equal(t, []goal{
		{
			"The server, Hot loop: less CPU, fewer requests, and fewer bytes written to etcd than the better peer",
			"CPU of the server 0.50×; requests 0.90×; bytes written to etcd 0.90×", true,
		},
		{
			"The server, Rollout: less CPU, fewer requests, and fewer bytes written to etcd than the better peer",
			"CPU of the server 0.50×; requests 1.00× of `tools/record`, whose Events account for 50.0 % of the occurrences; " +
				"bytes written to etcd 1.57× of `tools/record`, whose Events account for 50.0 % of the occurrences", false,
		},
		{"Event data in etcd: at most 56 % more than with `tools/record`", "Rollout: +57 %", false},
	}, goals(r))
}

func TestNumberFormats(t *testing.T) {
	for ns, want := range map[float64]string{82.4: "82 ns", 4900: "4.9 µs", 27_000: "27 µs", 5e6: "5.0 ms", 1.25e10: "12 s"} {
		assert.Equal(t, want, nanoseconds(ns))
	}
	for n, want := range map[any]string{int64(1500): "1.5 kB", uint64(60e6): "60 MB", int64(1.26e9): "1.3 GB"} {
		assert.Equal(t, want, size(n))
	}
	assert.Equal(t, "2.10× (2.00×–15×)", ratio(bench.Spread{Median: 2.1, Min: 2, Max: 15}))
}
