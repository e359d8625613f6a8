package bench

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, apiserver.Leaks)) }

func TestFormsReferenceTheSameObject(t *testing.T) {
	want := newSubject("ObjectReference", true, 7)
	for _, form := range Forms {
		got := newSubject(form, true, 7)
		for _, pair := range [][2]*object{{want.regarding, got.regarding}, {want.related, got.related}} {
			a, err := reference.GetReference(scheme.Scheme, pair[0].Object)
			require.NoError(t, err)
			b, err := reference.GetReference(scheme.Scheme, pair[1].Object)
			require.NoError(t, err)
			assert.Equal(t, a, b, form)
			assert.Equal(t, referenceTo(pair[0]), referenceTo(pair[1]), form)
		}
	}
}

func TestPodNamesAreUnique(t *testing.T) {
	const n = 100_000
	names, uids := make(map[string]bool, n), make(map[string]bool, n)
	for i := range n {
		p := podNames(i)
		names[p.name], uids[p.uid] = true, true
		require.Len(t, p.uid, 36)
	}
	assert.Len(t, names, n)
	assert.Len(t, uids, n)
}

// Comparisons are only fair if no recorder loses events.
func TestDriverLosesNoEvents(t *testing.T) {
	const series, more = queueSize + 500, 5*queueSize + 17
	subjects := references(series)
	for _, name := range []string{Ours, ToolsNew, ToolsOld, Floor, FloorClock} {
		t.Run(name, func(t *testing.T) {
			d := newRecorder(name, series)
			defer d.close()
			d.begin(series, func(i int) *subject { return &subjects[i] })
			assert.Equal(t, series, d.tracked(series))
			var processed int
			s := newSubject("typed", false, 0)
			if _, ok := d.recorder.(*floor); !ok {
				assert.EqualValues(t, 2*series, d.sink.writes(), "a create and a patch per series")
			}
			d.emitAbout(more, &s)
			switch r := d.recorder.(type) {
			case *ours:
				processed = int(r.Stats().Occurrences)
			case queued:
				processed = int(r.counted())
			case *floor:
				for _, e := range r.counts {
					processed += e.count
				}
			}
			assert.Equal(t, 2*series+more, processed)
		})
	}
}

func TestSpread(t *testing.T) {
	assert.Equal(t, Spread{}, SpreadOf(nil))
	assert.Equal(t, Spread{Median: 2, Min: 2, Max: 2}, SpreadOf([]float64{2}))
	assert.Equal(t, Spread{Median: 2.5, Min: 1, Max: 9}, SpreadOf([]float64{9, 2, 1, 3}))
	values := []float64{3, 1, 2}
	assert.Equal(t, Spread{Median: 2, Min: 1, Max: 3}, SpreadOf(values))
	assert.Equal(t, []float64{3, 1, 2}, values)
}

func TestQuantile(t *testing.T) {
	values := make([]int, 1000)
	for i := range values {
		values[i] = i + 1
	}
	for q, want := range map[float64]int{0: 1, 0.5: 500, 0.999: 999, 1: 1000} {
		assert.Equal(t, want, Quantile(values, q))
	}
	assert.Equal(t, 7, Quantile([]int{7}, 0.999))
}

func TestLoopCountsRequests(t *testing.T) {
	l := Loop{Duration: 2 * time.Hour}
	l.count([]request{
		{method: "GET", at: 0},
		{method: "POST", at: 0, body: 700, json: true},
		{method: "PATCH", at: time.Second, body: 100, json: true},
		{method: "PATCH", at: 30 * time.Minute, body: 110, json: true},
		{method: "PATCH", at: 70 * time.Minute, body: 120, json: true},
		{method: "PATCH", at: 110 * time.Minute, body: 130, json: true},
		{method: "PATCH", at: 126 * time.Minute, body: 140, json: true},
	})
	assert.Len(t, l.Sent, 121)
	for minute, want := range map[int]int{0: 2, 1: 3, 29: 3, 30: 4, 70: 5, 110: 6, 120: 6} {
		assert.Equal(t, want, l.Sent[minute], minute)
	}
	l.Sent = nil
	assert.Equal(t, Loop{
		Duration: 2 * time.Hour, Requests: 7, Bytes: 1300, Hourly: 2, Create: 700, Series: 100, Heartbeat: 120, Last: 140,
	}, l)
}

func TestSimulationSummarizesWrites(t *testing.T) {
	r := Simulation{Beginning: 2, Writes: slices.Repeat([]int{10}, 100)}
	r.Writes[0], r.Writes[1] = 500, 500 // the beginning
	r.Writes[5] = 40                    // not in the mean
	r.Writes[30] = 70
	r.Writes[95] = 30 // in an incomplete interval
	r.summarize()
	assert.Equal(t, 70, r.Busiest)
	assert.InDelta(t, 11, r.Mean, 1e-9)
	r.Writes[30] = 10
	r.summarize()
	assert.Equal(t, 40, r.Busiest)
}

// Heartbeats must not come in bursts that the server notices every half hour.
func TestHeartbeatsAreSpread(t *testing.T) {
	for name, rebuilt := range map[string]bool{"after a start": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			const every = 4
			s := Simulate(t, 10_000, every*time.Minute, rebuilt)
			// At first, the heartbeats of the first minutes wait for the next occurrence: they
			// would change nothing.
			busiest := slices.Max(s.Writes[s.Beginning+2*every:])
			t.Logf("writes per minute: %d at most, %d in the first minutes, %.1f on average", busiest, s.Busiest, s.Mean)
			assert.LessOrEqual(t, float64(busiest), 1.5*s.Mean)
			assert.LessOrEqual(t, float64(s.Busiest), 2*s.Mean)
			assert.InEpsilon(t, 10_000.0/30, s.Mean, 0.1, "one heartbeat per half hour")
		})
	}
}
