package bench

import (
	"os"
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
	for _, name := range []string{Ours, ToolsNew, ToolsOld, Floor} {
		t.Run(name, func(t *testing.T) {
			d := newRecorder(name, series)
			defer d.close()
			d.begin(series, func(i int) *subject { return &subjects[i] })
			assert.Equal(t, series, d.tracked(series))
			var processed int
			s := newSubject("typed", false, 0)
			if _, ok := d.recorder.(*floor); !ok {
				assert.EqualValues(t, 2*series, d.sink.n, "a create and a patch per series")
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

func TestTally(t *testing.T) {
	var seconds tally
	for second, n := range map[int]int{0: 1, 59: 2, 61: 5, 130: 1} {
		for range n {
			seconds.add(time.Duration(second)*time.Second + time.Millisecond)
		}
	}
	assert.Equal(t, []int{3, 5, 1}, seconds.minutes())
	busiest, mean := seconds.busiest()
	assert.Equal(t, 5, busiest)
	assert.InDelta(t, 5.0/60, mean, 1e-9)
}

func TestMedianHour(t *testing.T) {
	hour := func(cpu float64) Hour { return Hour{CPU: Spread{Median: cpu}} }
	assert.Equal(t, Spread{Median: 3, Min: 1, Max: 4}, medianHour([]Hour{hour(4), hour(1), hour(3), hour(2)}).CPU)
}
