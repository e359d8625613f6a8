package main

import (
	"os"
	"path/filepath"
	"testing"

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

func TestGoals(t *testing.T) {
	ratio := func(recorder string, median float64) bench.Cost {
		return bench.Cost{Recorder: recorder, Ratio: bench.Spread{Median: median}, Allocs: median}
	}
	hour := func(recorder string, cpu float64, requests, counted int, written int64) bench.Hour {
		return bench.Hour{
			Story: "a", Recorder: recorder, Occurrences: 10, Counted: counted, Requests: map[string]int{"create": requests - 1, "patch": 1},
			Written: written, CPU: bench.Spread{Median: cpu}, Busiest: 10, Within: 3, Emitted: 9,
		}
	}
	r := &bench.Results{
		Hot: []bench.Hot{
			{Costs: bench.Costs{{Recorder: bench.Ours}, ratio(bench.Floor, 1/1.26), ratio(bench.ToolsNew, 20), ratio(bench.ToolsOld, 99)}},
			{Costs: bench.Costs{{Recorder: bench.Ours}, ratio(bench.Floor, 2), ratio(bench.ToolsNew, 40)}},
		},
		Parallel: []bench.Parallel{{Recorder: bench.Ours, Same: bench.Spread{Median: 0.7}}, {Recorder: bench.Floor}},
		Heap:     []bench.Heap{{Recorder: bench.Ours, Series: 1000, Held: 501, Strings: 100}, {Recorder: bench.ToolsNew, Series: 1000, Shared: 9}},
		Fresh:    bench.Fresh{Costs: bench.Costs{ratio(bench.Ours, 1), ratio(bench.ToolsNew, 1.25), ratio(bench.ToolsOld, 2)}},
		Server:   []bench.Hour{hour(bench.Ours, 1, 10, 10, 9), hour(bench.ToolsNew, 2, 20, 10, 10), hour(bench.ToolsOld, 3, 10, 5, 20)},
		Fleet:    []bench.Hour{hour(bench.Ours, 0, 9, 9, 9), hour(bench.ToolsNew, 0, 20, 10, 10), hour(bench.ToolsOld, 0, 10, 5, 20), hour(bench.Ours, 0, 1, 1, 1)},
	}
	r.Fleet[3].Story = "unfinished"
	var measured []string
	var holds []bool
	for _, g := range goals(r) {
		measured, holds = append(measured, g.Measured), append(holds, g.Holds)
	}
	assert.Equal(t, []string{
		"0.000 allocations for any form of object", "20.0 to 40.0 times", "99 to 99 times", "0.50 to 1.26 times", "0.70 times",
		"401 bytes, and 501 with the strings", "0.80 times", "1.0 and 1.2",
		"CPU 0.50×; requests 1.00×; bytes written to etcd 0.90×",
		"1 lost; requests 0.90×; busiest second 3.33×",
	}, measured)
	assert.Equal(t, []bool{true, true, false, false, true, false, true, true, false, false}, holds)
	assert.Empty(t, goals(new(bench.Results)))
}

func TestNumberFormats(t *testing.T) {
	for ns, want := range map[float64]string{82.4: "82 ns", 4900: "4.9 µs", 27_000: "27 µs", 5e6: "5.0 ms", 1.25e10: "12 s"} {
		assert.Equal(t, want, nanoseconds(ns))
	}
	assert.Equal(t, []string{"2.10×", "15×"}, []string{times(2.1), times(15)})
}
