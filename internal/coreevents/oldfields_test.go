package coreevents

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	first = metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 999999000, time.UTC))
	last  = metav1.NewMicroTime(first.Add(100 * time.Second))
)

// aSeries returns an Event that has occurred 57 times.
func aSeries() *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: "ns", Name: "x"},
		EventTime:           first,
		ReportingController: "example.com/x",
		Series:              &eventsv1.EventSeries{Count: 57, LastObservedTime: last},
	}
}

func TestOldFieldsOfAnEvent(t *testing.T) {
	type old struct {
		source      corev1.EventSource
		first, last metav1.Time
		count       int32
	}
	// The times of a microsecond before are the seconds before.
	firstSecond, lastSecond := metav1.NewTime(first.Truncate(time.Second)), metav1.NewTime(last.Truncate(time.Second))
	for name, test := range map[string]struct {
		change func(*eventsv1.Event)
		want   old
	}{
		"a series":    {func(*eventsv1.Event) {}, old{corev1.EventSource{Component: "example.com/x"}, firstSecond, lastSecond, 57}},
		"a singleton": {func(e *eventsv1.Event) { e.Series = nil }, old{corev1.EventSource{Component: "example.com/x"}, firstSecond, firstSecond, 1}},
		"what was read back and has gone on": {func(e *eventsv1.Event) {
			e.DeprecatedSource = corev1.EventSource{Component: "old", Host: "node-1"}
			e.DeprecatedCount, e.DeprecatedFirstTimestamp, e.DeprecatedLastTimestamp = 3, metav1.Unix(1, 0), metav1.Unix(2, 0)
		}, old{corev1.EventSource{Component: "old", Host: "node-1"}, firstSecond, lastSecond, 57}},
		"born old": {func(e *eventsv1.Event) {
			e.EventTime, e.Series = metav1.MicroTime{}, nil
			e.DeprecatedSource = corev1.EventSource{Component: "old"}
			e.DeprecatedCount, e.DeprecatedFirstTimestamp, e.DeprecatedLastTimestamp = 3, metav1.Unix(1, 0), metav1.Unix(2, 0)
		}, old{corev1.EventSource{Component: "old"}, metav1.Unix(1, 0), metav1.Unix(2, 0), 3}},
	} {
		t.Run(name, func(t *testing.T) {
			event := aSeries()
			test.change(event)
			before := event.DeepCopy()
			core := ToCoreWithOldFields(event)
			assert.Equal(t, test.want, old{core.Source, core.FirstTimestamp, core.LastTimestamp, core.Count})
			assert.Equal(t, before, event)
			// The rest is the conversion.
			core.Source, core.FirstTimestamp, core.LastTimestamp, core.Count = event.DeprecatedSource, event.DeprecatedFirstTimestamp, event.DeprecatedLastTimestamp, event.DeprecatedCount
			assert.Equal(t, ToCore(event), core)
		})
	}
}

func TestOldFieldsOfAPatch(t *testing.T) {
	const series = `"series":{"count":57,"lastObservedTime":"2026-01-02T03:05:45.999999Z"}`
	const decided = `"firstTimestamp":"2026-01-02T03:04:05Z","source":{"component":"example.com/x"}`
	const all = `"count":57,"lastTimestamp":"2026-01-02T03:05:45Z",` + decided
	const annotations = `"metadata":{"annotations":{"a":"1","b":null}}`
	for name, test := range map[string]struct{ patch, want string }{
		"a series":                     {`{` + series + `,` + annotations + `}`, `{` + series + `,` + annotations + `,` + all + `}`},
		"nothing":                      {`{}`, `{}`},
		"no series":                    {`{` + annotations + `}`, `{` + annotations + `}`},
		"a series is taken away":       {`{"series":null}`, `{"series":null}`},
		"a count alone":                {`{"series":{"count":9}}`, `{"series":{"count":9},"count":9,` + decided + `}`},
		"a time alone":                 {`{"series":{"lastObservedTime":"2026-01-02T03:05:45.999999Z"}}`, `{"series":{"lastObservedTime":"2026-01-02T03:05:45.999999Z"},"lastTimestamp":"2026-01-02T03:05:45Z",` + decided + `}`},
		"old fields of somebody's own": {`{` + series + `,"count":3,"source":null}`, `{` + series + `,"count":3,"source":null,"lastTimestamp":"2026-01-02T03:05:45Z","firstTimestamp":"2026-01-02T03:04:05Z"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := patchWithOldFields(aSeries(), []byte(test.patch))
			require.NoError(t, err)
			assert.JSONEq(t, test.want, string(got))
		})
	}

	// Of an Event of which no more is known than where it is.
	got, err := patchWithOldFields(&eventsv1.Event{}, []byte(`{`+series+`}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{`+series+`,"count":57,"lastTimestamp":"2026-01-02T03:05:45Z"}`, string(got))

	for patch, want := range map[string]string{
		``:                                "no merge patch",
		`[{"op":"remove","path":"/a"}]`:   "no merge patch",
		`{"series":7}`:                    "series: ",
		`{"series":{"count":9999999999}}`: "series: ",
	} {
		_, err := patchWithOldFields(aSeries(), []byte(patch))
		require.ErrorContains(t, err, want, patch)
	}
}
