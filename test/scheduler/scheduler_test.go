package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The same results always produce the same page.
func TestPageIsUpToDate(t *testing.T) {
	results, err := readResults("../../docs/case-study/scheduler.json")
	require.NoError(t, err)
	assert.Len(t, results.Runs, len(cases)*len(recorders), "results of cases that do not exist, or none of some")
	old, err := os.ReadFile(filepath.Join("..", "..", pagePath))
	require.NoError(t, err)
	text, err := page(string(old), results)
	require.NoError(t, err)
	assert.Equal(t, text, string(old), "run the program with -report")
}

func TestReplacePart(t *testing.T) {
	first, err := replacePart("# Page\n", "one\n")
	require.NoError(t, err)
	assert.Equal(t, "# Page\n"+begin+"\none\n\n"+end, first)
	second, err := replacePart(first+"\nmore\n", "two\n")
	require.NoError(t, err)
	assert.Equal(t, "# Page\n"+begin+"\ntwo\n\n"+end+"\nmore\n", second)
	_, err = replacePart(begin, "three\n")
	assert.ErrorContains(t, err, pagePath+": no line")
}

func TestCountRequests(t *testing.T) {
	byVerb, failed, others, err := countRequests(strings.NewReader(`
		{"userAgent":"kube-scheduler/v1","verb":"create","objectRef":{"name":"stuck-1.5f"},"responseStatus":{"code":201}}
		{"userAgent":"kube-scheduler/v1","verb":"create","objectRef":{"name":"stuck-2.5f"},"responseStatus":{"code":409}}
		{"userAgent":"kube-scheduler/v1","verb":"patch","objectRef":{"name":"stuck-2.5f"},"responseStatus":{"code":200}}
		{"userAgent":"kube-scheduler/v1","verb":"create","objectRef":{"name":"work-1.5f"},"responseStatus":{"code":201}}
		{"userAgent":"kube-scheduler/v1","verb":"list","objectRef":{},"responseStatus":{"code":200}}
		{"userAgent":"kube-scheduler/v1","verb":"create","responseStatus":{"code":400}}
		{"userAgent":"kube-apiserver/v1","verb":"create","objectRef":{"name":"10.0.0.1.5f"},"responseStatus":{"code":201}}`))
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"create": 3, "patch": 1, "list": 1}, byVerb)
	assert.Equal(t, map[string]int{"create 409": 1, "create 400": 1}, failed)
	assert.Equal(t, 1, others)
	_, _, _, err = countRequests(strings.NewReader("{"))
	assert.ErrorContains(t, err, "audit log")
}

func TestResults(t *testing.T) {
	one := Result{Case: cases[1].Name, Recorder: ours, Occurrences: 9, Requests: map[string]int{"create": 2, "patch": 3}, Stopped: Tally{Count: 7},
		Batches: []Batch{{Bound: 10, Seconds: 1}, {Bound: 10, Seconds: 2}, {Bound: 10, Seconds: 5}}}
	assert.Equal(t, 5, one.requests())
	assert.Equal(t, 2, one.lost())
	assert.InDelta(t, 5, one.throughput(), 0)
	one.Batches = one.Batches[:2]
	assert.InDelta(t, 7.5, one.throughput(), 0)

	var r Results
	r.replace([]Result{one, {Case: cases[1].Name, Recorder: clientGo}})
	r.replace([]Result{{Case: cases[0].Name, Recorder: ours}, {Case: one.Case, Recorder: ours, Occurrences: 1}})
	require.Len(t, r.Runs, 3)
	assert.Equal(t, cases[0].Name, r.Runs[0].Case)
	assert.Equal(t, clientGo, r.Runs[1].Recorder)
	assert.Equal(t, 1, r.Runs[2].Occurrences)
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -100: "-100", 1234567: "1,234,567"} {
		assert.Equal(t, want, count(n))
	}
}
