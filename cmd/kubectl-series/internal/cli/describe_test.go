package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/terminal"
	"github.com/eventseries/eventseries/query"
)

func TestReasonsForStates(t *testing.T) {
	now := time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(now.Add(-d)) }
	event := func(state, heartbeat string, last time.Duration) *eventsv1.Event {
		e := &eventsv1.Event{EventTime: ago(2 * time.Hour), Series: &eventsv1.EventSeries{Count: 5, LastObservedTime: ago(last)}}
		if state != "" {
			e.Labels = map[string]string{"eventseries.dev/state": state}
			e.Annotations = map[string]string{"eventseries.dev/heartbeat": heartbeat}
		}
		return e
	}
	legacy := func(last time.Duration) *eventsv1.Event {
		return &eventsv1.Event{
			DeprecatedCount: 5, DeprecatedFirstTimestamp: metav1.NewTime(now.Add(-last - time.Minute)), DeprecatedLastTimestamp: metav1.NewTime(now.Add(-last)),
		}
	}
	finished := event("Finished", "", time.Hour)
	written := metav1.NewTime(now.Add(-50 * time.Minute))
	finished.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{}}, {Time: &written}}
	for _, test := range []struct {
		event *eventsv1.Event
		want  string
	}{
		{&eventsv1.Event{EventTime: ago(time.Hour)}, "Singleton: occurred once"},
		{event("Ongoing", "10m", 4*time.Minute), "Ongoing: next heartbeat expected at 2026-11-22 07:06:00 UTC (in 6m)"},
		{event("Ongoing", "10m", 27*time.Minute), "Unknown: stale since 2026-11-22 06:59:00 UTC (60s ago); the recorder missed the heartbeat that was expected at 2026-11-22 06:43:00 UTC (17m ago)"},
		{finished, "Finished at 2026-11-22 06:10:00 UTC (50m ago)"},
		{event("Finished", "", time.Hour), "Finished at about 2026-11-22 06:06:00 UTC (54m ago): has not occurred since 2026-11-22 06:00:00 UTC (60m ago)"},
		{event("Finished", "", time.Minute), "Finished: has not occurred since 2026-11-22 06:59:00 UTC (60s ago)"},
		{event("Unknown", "", time.Hour), "Unknown: the recorder stopped to track the series while it was ongoing"},
		{event("", "", time.Minute), "Ongoing: occurred more than once; its recorder writes no states, so it counts as ongoing until 2026-11-22 07:45:00 UTC (in 45m)"},
		{event("", "", time.Hour), "Unknown: not updated since 2026-11-22 06:00:00 UTC (60m ago); its recorder writes no states, and updates a series that goes on every 30m, so the loop or its process has probably ended"},
		{legacy(time.Hour), "Quiet since 2026-11-22 06:00:00 UTC (60m ago): its recorder would have written another occurrence, so the loop or its process has probably ended"},
		{legacy(time.Minute), "Ongoing: occurred more than once; its recorder writes no states, so it counts as ongoing until 2026-11-22 07:10:00 UTC (in 10m)"},
		{event("", "", -time.Hour), "Unknown: the time of its last occurrence is in the future"},
		{event("Ongoing", "", -time.Hour), "Unknown: the time of its last occurrence is in the future"},
	} {
		assert.Equal(t, test.want, why(query.FromEvent(test.event, now)))
	}
	contended, other := query.FromEvent(legacy(15*time.Minute), now), query.FromEvent(legacy(5*time.Minute), now)
	other.First = contended.First.Add(time.Second)
	query.Settle([]*query.Item{contended, other})
	assert.Equal(t, "Unknown: not written since 2026-11-22 06:45:00 UTC (15m ago); its recorder writes only one event of an object every 5 minutes, and wrote another one at 2026-11-22 06:55:00 UTC (5m ago)", why(contended))
	noLast := legacy(time.Hour)
	noLast.DeprecatedLastTimestamp = metav1.Time{}
	assert.Equal(t, "Unknown: the Event does not contain the time of its last occurrence", why(query.FromEvent(noLast, now)))
}

func TestQuietWindow(t *testing.T) {
	now := time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	event := func(state, window string, last time.Duration) *query.Item {
		return query.FromEvent(&eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{"eventseries.dev/state": state},
				Annotations: map[string]string{"eventseries.dev/window": window},
			},
			EventTime: metav1.NewMicroTime(now.Add(-2 * time.Hour)), Series: &eventsv1.EventSeries{Count: 5, LastObservedTime: metav1.NewMicroTime(now.Add(-last))},
		}, now)
	}
	legacy := query.FromEvent(&eventsv1.Event{
		DeprecatedCount: 3, DeprecatedFirstTimestamp: metav1.NewTime(now.Add(-20 * time.Minute)), DeprecatedLastTimestamp: metav1.NewTime(now),
	}, now)
	for want, item := range map[string]*query.Item{
		"21m: Finished at 2026-11-22 07:11:00 UTC (in 11m) unless it recurs":                                          event("Ongoing", "21m", 10*time.Minute),
		"6m: recurred since 2026-11-22 06:50:00 UTC (10m ago), or it would be Finished; the next heartbeat says when": event("Ongoing", "", 10*time.Minute),
		"28m, as far as the count and the times tell: Quiet after 2026-11-22 07:33:00 UTC (in 33m) unless it recurs":  legacy,
		"": event("Finished", "21m", time.Minute),
	} {
		assert.Equal(t, want, window(item))
	}
}

func TestDescription(t *testing.T) {
	now := time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	item := func(name string, count int32) *query.Item {
		return query.FromEvent(&eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{"x": "\x1b[31m"}},
			Reason:     "BackOff", Type: "Warning", Note: "two\nlines\x07", DeprecatedCount: count,
			DeprecatedFirstTimestamp: metav1.NewTime(now.Add(-10 * time.Minute)), DeprecatedLastTimestamp: metav1.NewTime(now.Add(-time.Minute)),
			DeprecatedSource: corev1.EventSource{Component: "kubelet", Host: "worker-3"},
			Regarding:        corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-0", FieldPath: "spec.containers{app}"},
		}, now)
	}
	var b strings.Builder
	for _, f := range description(&query.Chain{Item: item("web-0.a", 19), Predecessors: []*query.Item{item("web-0.0", 1)}}) {
		b.WriteString(f.format(terminal.Terminal{}))
	}
	assert.Equal(t, `Event:           web-0.a
Namespace:       shop
State:           Ongoing: occurred more than once; its recorder writes no states, so it counts as ongoing until 2026-11-22 07:13:27 UTC (in 13m)
Quiet Window:    9m27s, as far as the count and the times tell: Quiet after 2026-11-22 07:13:27 UTC (in 13m) unless it recurs
Type:            Warning
Reason:          BackOff
Action:          <none>
Regarding:       Pod/web-0 in shop, spec.containers{app}
Related:         <none>
Controller:      kubelet
Node:            worker-3
Instance:        worker-3
Recorder:        tools/record
First:           2026-11-22 06:50:00 UTC (10m ago)
Last:            2026-11-22 06:59:00 UTC (60s ago)
Count:           19+
Rate:            2/m (19 times in 9m)
Note:            two
                 lines�
Labels:          <none>
Annotations:     x: �[31m
Predecessors:    web-0.0: Singleton, 1 occurrence, first at 2026-11-22 06:50:00 UTC (10m ago), last at 2026-11-22 06:59:00 UTC (60s ago)
Successors:      <none>
`, b.String())
}
