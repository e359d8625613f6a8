package tracker

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/eventseries/eventseries/series"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMergeAnnotations(t *testing.T) {
	long := strings.Repeat("x", series.MaxAnnotationBytes-1)
	type m = map[string]string
	for _, tt := range []struct {
		name              string
		old, latest, want m
	}{
		{"nothing", nil, nil, nil},
		{"first", nil, m{"a": "1"}, m{"a": "1"}},
		{"none later", m{"a": "1"}, nil, m{"a": "1"}},
		{"same", m{"a": "1", "b": "2"}, m{"a": "1"}, m{"a": "1", "b": "2"}},
		{"changed", m{"a": "1", "b": "2"}, m{"a": "3"}, m{"a": "3", "b": "2"}},
		{"added", m{"a": "1"}, m{"b": ""}, m{"a": "1", "b": ""}},
		{"ours alone", nil, m{series.AnnotationState: "Finished"}, nil},
		{"ours among others", m{"a": "1"}, m{series.AnnotationLastNote: "x", series.AnnotationPrefix + "y": "z", "b": "2"}, m{"a": "1", "b": "2"}},
		{"as much as there is room for", nil, m{"a": long}, m{"a": long}},
		{"ours need no room", nil, m{"a": long, series.AnnotationState: "x"}, m{"a": long}},
		{"too much at once", nil, m{"ab": long}, nil},
		{"too much in the end", m{"a": long}, m{"b": "x"}, m{"a": long}},
		{"other values fit", m{"a": long}, m{"a": "x", "b": "y"}, m{"a": "x", "b": "y"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old, latest := maps.Clone(tt.old), maps.Clone(tt.latest)
			got := mergeAnnotations(tt.old, tt.latest)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, old, tt.old, "writes that are under way share it")
			assert.Equal(t, latest, tt.latest, "it is the caller's")
		})
	}
}

// Annotations whose keys never recur fill neither the memory nor the Event.
func TestAnnotationsAreBounded(t *testing.T) {
	table := NewTable(Options{NoteInterval: 1}, start)
	k := testKey("a")
	now := start
	value := strings.Repeat("x", 100)
	for i := range 2000 {
		now = now.Add(time.Second)
		table.Observe(k, Occurrence{Annotations: map[string]string{fmt.Sprintf("trace-%d", i): value}}, now)
	}
	e := table.shard(k.FastHash(table.seed)).find(k.FastHash(table.seed), k)
	require.NotNil(t, e)
	assert.LessOrEqual(t, size(e.annotations), series.MaxAnnotationBytes)
	assert.Contains(t, e.annotations, "trace-0", "what the server may have already stays, as a patch takes nothing away")
}

// A note is asked for once in an interval, and those between are not looked at.
func TestNotes(t *testing.T) {
	table := NewTable(Options{}, start)
	k := testKey("a")
	e := table.Observe(k, Occurrence{Note: "first"}, start).Dirty[0]
	note := func() string {
		w, _, ok := table.Begin(e, start.Add(time.Minute))
		require.True(t, ok)
		table.Failed(e, w)
		assert.Equal(t, "first", w.Series.Note)
		return w.Series.LastNote
	}
	assert.Empty(t, note())
	table.Observe(k, Occurrence{Note: "second"}, start.Add(time.Second))
	assert.Equal(t, "second", note())

	for _, tt := range []struct {
		at   time.Duration
		want bool
	}{
		{2 * time.Second, false},
		{11*time.Second - 1, false},
		{11 * time.Second, true},
		{11 * time.Second, false}, // one caller is enough
		{20 * time.Second, false},
		{21 * time.Second, true},
	} {
		_, counted, want := table.Count(k, start.Add(tt.at))
		assert.True(t, counted)
		assert.Equal(t, tt.want, want, tt.at)
	}
	table.Describe(e, Occurrence{Note: "third", Annotations: map[string]string{"a": "1"}}, start.Add(21*time.Second))
	assert.Equal(t, "third", note())
	table.Describe(e, Occurrence{}, start.Add(22*time.Second))
	assert.Equal(t, "third", note(), "an occurrence without a note says nothing")
	assert.Equal(t, map[string]string{"a": "1"}, e.annotations)
}
