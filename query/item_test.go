package query

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/series"
)

var t0 = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func micro(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(t0.Add(d)) }
func seconds(d time.Duration) metav1.Time    { return metav1.NewTime(t0.Add(d)) }

func labeled(state string) func(*eventsv1.Event) {
	return func(e *eventsv1.Event) { metav1.SetMetaDataLabel(&e.ObjectMeta, series.LabelState, state) }
}

func recurred(count int32, last time.Duration) func(*eventsv1.Event) {
	return func(e *eventsv1.Event) {
		e.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: micro(last)}
	}
}

func legacy(count int32, first, last time.Duration) func(*eventsv1.Event) {
	return func(e *eventsv1.Event) {
		e.EventTime, e.ReportingController, e.ReportingInstance = metav1.MicroTime{}, "", ""
		e.DeprecatedCount, e.DeprecatedFirstTimestamp, e.DeprecatedLastTimestamp = count, seconds(first), seconds(last)
		e.DeprecatedSource = corev1.EventSource{Component: "kubelet", Host: "n1"}
	}
}

// annotated says when an Event without eventTime occurred first.
func annotated(first time.Duration) func(*eventsv1.Event) {
	return func(e *eventsv1.Event) {
		metav1.SetMetaDataAnnotation(&e.ObjectMeta, series.AnnotationEventTime, micro(first).UTC().Format(metav1.RFC3339Micro))
	}
}

// newEvent returns an Event of tools/events at t0, with changes.
func newEvent(changes ...func(*eventsv1.Event)) *eventsv1.Event {
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: "shop", Name: "checkout-0.18a1b2c3d4e5f601", CreationTimestamp: seconds(0)},
		EventTime:           micro(0),
		ReportingController: "example.com/c",
		ReportingInstance:   "c-1",
		Action:              "Pull",
		Reason:              "Failed",
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "checkout-0", UID: "u0"},
		Note:                "no such image",
		Type:                corev1.EventTypeWarning,
	}
	for _, change := range changes {
		change(event)
	}
	return event
}

func TestFromEvent(t *testing.T) {
	const m, s = time.Minute, time.Second
	const none = time.Duration(-1) // no time
	noTimes := func(e *eventsv1.Event) {
		legacy(0, 0, 0)(e)
		e.DeprecatedFirstTimestamp, e.DeprecatedLastTimestamp = metav1.Time{}, metav1.Time{}
	}
	named := func(name func(*series.Key) string) func(*eventsv1.Event) {
		return func(e *eventsv1.Event) {
			read, err := series.FromEvent(newEvent())
			require.NoError(t, err)
			e.Name = name(&read.Key)
		}
	}
	heartbeat := func(value string) func(*eventsv1.Event) {
		return func(e *eventsv1.Event) {
			metav1.SetMetaDataAnnotation(&e.ObjectMeta, series.AnnotationHeartbeat, value)
		}
	}
	window := func(value string) func(*eventsv1.Event) {
		return func(e *eventsv1.Event) { metav1.SetMetaDataAnnotation(&e.ObjectMeta, series.AnnotationWindow, value) }
	}
	type changes []func(*eventsv1.Event)
	for name, tt := range map[string]struct {
		changes     changes
		at          time.Duration
		recorder    Recorder
		state       series.State
		count       int32
		first, last time.Duration
		staleAt     time.Duration // 0: zero
		problem     string
	}{
		// This project.
		"ongoing":               {changes{labeled("Ongoing"), recurred(7, 10*m)}, 56 * m, Eventseries, series.Ongoing, 7, 0, 10 * m, 56 * m, ""},
		"stale":                 {changes{labeled("Ongoing"), recurred(7, 10*m)}, 56*m + 1, Eventseries, series.Unknown, 7, 0, 10 * m, 56 * m, ""},
		"another heartbeat":     {changes{labeled("Ongoing"), recurred(7, 10*m), heartbeat("5m")}, 32 * m, Eventseries, series.Unknown, 7, 0, 10 * m, 31 * m, ""},
		"window":                {changes{labeled("Ongoing"), recurred(7, 10*m), window("21m")}, 71 * m, Eventseries, series.Ongoing, 7, 0, 10 * m, 71 * m, ""},
		"finished":              {changes{labeled("Finished"), recurred(7, 10*m)}, 24 * 60 * m, Eventseries, series.Finished, 7, 0, 10 * m, 0, ""},
		"evicted":               {changes{labeled("Unknown"), recurred(7, 10*m)}, 11 * m, Eventseries, series.Unknown, 7, 0, 10 * m, 0, ""},
		"base name":             {changes{named(func(k *series.Key) string { return k.Name(0) })}, m, Eventseries, series.Singleton, 1, 0, 0, 0, ""},
		"unique name of a note": {changes{named(func(k *series.Key) string { k.Note = "no such image"; return k.UniqueName(t0) })}, m, Eventseries, series.Singleton, 1, 0, 0, 0, ""},
		"through core/v1": {changes{labeled("Ongoing"), recurred(7, 10*m+m/8), legacy(7, 0, 10*m), func(e *eventsv1.Event) { e.EventTime = micro(m / 8) }},
			11 * m, Eventseries, series.Ongoing, 7, m / 8, 10*m + m/8, 56*m + m/8, ""},
		"singleton through core/v1": {changes{legacy(1, 0, 0), func(e *eventsv1.Event) { e.EventTime = micro(s / 4) }}, m, ToolsEvents, series.Singleton, 1, s / 4, s / 4, 0, ""},
		"series without eventTime": {changes{labeled("Ongoing"), recurred(7, 10*m+m/8), legacy(7, 0, 10*m), annotated(m / 8)},
			11 * m, Eventseries, series.Ongoing, 7, m / 8, 10*m + m/8, 56*m + m/8, ""},
		"singleton without eventTime": {changes{legacy(1, 0, 0), annotated(s / 4)}, m, Eventseries, series.Singleton, 1, s / 4, s / 4, 0, ""},

		// client-go and others.
		"tools/events":           {changes{recurred(2, 10*m)}, 56 * m, ToolsEvents, series.Ongoing, 2, 0, 10 * m, 56 * m, ""},
		"stale tools/events":     {changes{recurred(2, 10*m)}, 57 * m, ToolsEvents, series.Unknown, 2, 0, 10 * m, 56 * m, ""},
		"singleton":              {nil, 47 * m, ToolsEvents, series.Singleton, 1, 0, 0, 0, ""},
		"legacy":                 {changes{legacy(90, 0, 10*m)}, 21 * m, ToolsRecord, series.Ongoing, 90, 0, 10 * m, 21 * m, ""},
		"quiet legacy":           {changes{legacy(90, 0, 10*m)}, 21*m + 1, ToolsRecord, series.Quiet, 90, 0, 10 * m, 21 * m, ""},
		"legacy that backs off":  {changes{legacy(18, 0, 40*m), func(e *eventsv1.Event) { e.DeprecatedSource.Component = "c" }}, 81 * m, ToolsRecord, series.Ongoing, 18, 0, 40 * m, 81 * m, ""},
		"kubelet that backs off": {changes{legacy(18, 0, 40*m)}, 55 * m, ToolsRecord, series.Ongoing, 18, 0, 40 * m, 55*m + 30*s, ""},
		"legacy without count":   {changes{legacy(0, m, 2*m)}, 3 * m, ToolsRecord, series.Singleton, 1, m, 2 * m, 0, ""},
		"legacy with lastTimestamp": {changes{legacy(3, 0, 2*m), func(e *eventsv1.Event) { e.DeprecatedFirstTimestamp = metav1.Time{} }},
			3 * m, ToolsRecord, series.Ongoing, 3, 2 * m, 2 * m, 13 * m, ""},
		"neither":            {changes{noTimes, func(e *eventsv1.Event) { e.CreationTimestamp = seconds(m) }}, 3 * m, Other, series.Singleton, 1, m, m, 0, ""},
		"count without time": {changes{noTimes, func(e *eventsv1.Event) { e.DeprecatedCount = 4 }}, 3 * m, ToolsRecord, series.Unknown, 4, 0, none, 0, "no lastTimestamp"},
		"count without last": {changes{legacy(3, 0, 0), func(e *eventsv1.Event) { e.DeprecatedLastTimestamp = metav1.Time{} }}, 3 * m, ToolsRecord, series.Unknown, 3, 0, none, 0, "no lastTimestamp"},
		"clock ahead":        {changes{recurred(2, 60*m)}, 50 * m, ToolsEvents, series.Ongoing, 2, 0, 60 * m, 106 * m, ""},

		// Malformed.
		"year 1": {changes{legacy(3, m, 2*m), func(e *eventsv1.Event) { e.DeprecatedFirstTimestamp.Time = time.Time{}.Add(s) }},
			3 * m, ToolsRecord, series.Ongoing, 3, 2 * m, 2 * m, 13 * m, "the time 0001-01-01T00:00:01Z is before 1970"},
		"clock in the future":    {changes{recurred(2, 60*m)}, 50*m - 1, ToolsEvents, series.Unknown, 2, 0, 60 * m, 0, "the last time 2026-01-02T13:00:00Z is in the future"},
		"once in the future":     {nil, -11 * m, ToolsEvents, series.Unknown, 1, 0, 0, 0, "is in the future"},
		"finished in the future": {changes{labeled("Finished"), recurred(7, 60*m)}, m, Eventseries, series.Finished, 7, 0, 60 * m, 0, "is in the future"},
		"unknown state":          {changes{labeled("Running"), recurred(7, m)}, m, Eventseries, series.Ongoing, 7, 0, m, 47 * m, `label eventseries.dev/state is "Running"`},
		"state Singleton":        {changes{labeled("Singleton")}, m, Eventseries, series.Singleton, 1, 0, 0, 0, `label eventseries.dev/state is "Singleton"`},
		"state without series":   {changes{labeled("Finished")}, m, Eventseries, series.Finished, 1, 0, 0, 0, "there is no series"},
		"count of 1":             {changes{recurred(1, m)}, m, ToolsEvents, series.Singleton, 1, 0, m, 0, "series.count is 1"},
		"negative count":         {changes{recurred(-5, m)}, m, ToolsEvents, series.Singleton, 1, 0, m, 0, "series.count is -5"},
		"no last time": {changes{recurred(3, 0), func(e *eventsv1.Event) { e.Series.LastObservedTime = metav1.MicroTime{} }},
			m, ToolsEvents, series.Unknown, 3, 0, none, 0, "no series.lastObservedTime"},
		"last before first": {changes{recurred(3, -m)}, m, ToolsEvents, series.Ongoing, 3, -m, 0, 46 * m, "2026-01-02T11:59:00Z is before the first, 2026-01-02T12:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			event := newEvent(tt.changes...)
			before := event.DeepCopy()
			item := FromEvent(event, t0.Add(tt.at))
			assert.Equal(t, tt.state, item.State)
			assert.Equal(t, tt.recorder, item.Recorder)
			assert.Equal(t, event.Reason, item.Key.Reason)
			assert.Equal(t, tt.count, item.Count)
			assert.Equal(t, t0.Add(tt.first), item.First.UTC(), "first")
			if tt.last == none {
				assert.Zero(t, item.Last)
			} else {
				assert.Equal(t, t0.Add(tt.last), item.Last.UTC(), "last")
			}
			if tt.staleAt == 0 {
				assert.Zero(t, item.StaleAt)
				assert.Zero(t, item.NextWrite)
			} else {
				assert.Equal(t, t0.Add(tt.staleAt), item.StaleAt.UTC())
				if tt.recorder == ToolsRecord {
					assert.Zero(t, item.NextWrite)
				} else {
					assert.Equal(t, item.StaleAt.Add(-series.ClockSkew-item.QuietWindow()), item.NextWrite)
				}
				assert.Equal(t, item.State == series.Unknown, item.Stale())
			}
			if tt.problem == "" {
				require.NoError(t, item.Problem)
			} else {
				require.ErrorContains(t, item.Problem, "query: event shop/"+event.Name+": ")
				require.ErrorContains(t, item.Problem, tt.problem)
			}
			assert.Same(t, event, item.Event)
			assert.Equal(t, before, event)
		})
	}
}
