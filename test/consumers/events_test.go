package consumers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// sinkNames are the columns of the page.
var sinkNames = []string{"EventSinkImpl", "CoreSink"}

func newSink(t *testing.T, name string) events.EventSink {
	t.Helper()
	clients := apiserver.Clientset(t)
	if name == "CoreSink" {
		return &compat.CoreSink{Interface: clients.CoreV1()}
	}
	return &events.EventSinkImpl{Interface: clients.EventsV1()}
}

// The kinds of Events on the page, which are also the ends of their names.
const (
	singleton = "singleton"
	ongoing   = "ongoing"
	finished  = "finished"
	older     = "older" // an Ongoing series that began before the program
	legacy    = "legacy"
)

// The counts of series while they are Ongoing, and at the end.
const (
	someCount  = 12
	finalCount = 20
)

// claim is the related object of the Ongoing series.
var claim = series.Reference{
	APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data-0", UID: "0a3f51c2-8d52-4b62-9f4e-0d2ad2b1c8f7",
}

// newSeries returns the first occurrence of a series about an object.
func newSeries(namespace, kind string, regarding series.Reference, first time.Time) *series.Series {
	s := &series.Series{
		Key: series.Key{
			Regarding:           regarding,
			Type:                corev1.EventTypeWarning,
			Action:              "Backup",
			ReportingController: "backup-controller",
			ReportingInstance:   "backup-controller-7d4b9",
		},
		Namespace: namespace,
		Name:      regarding.Name + "." + kind,
		First:     first,
		Last:      first,
		Count:     1,
	}
	switch kind {
	case ongoing, older:
		s.Key.Reason, s.Note = "SnapshotFailed", "no space left on volume"
		s.Key.Related = claim
	case finished:
		s.Key.Reason, s.Note = "Throttled", "the API refuses requests"
	default:
		s.Key.Type, s.Key.Reason, s.Note = corev1.EventTypeNormal, "Started", "started a backup"
	}
	return s
}

func create(t *testing.T, sink events.EventSink, s *series.Series) {
	t.Helper()
	_, err := sink.Create(t.Context(), s.Event())
	require.NoError(t, err)
}

// patch writes a later state of a series, as a recorder does.
func patch(t *testing.T, sink events.EventSink, s *series.Series, state series.State, count int32, last time.Time) {
	t.Helper()
	s.State, s.Count, s.Last, s.Heartbeat = state, count, last, series.DefaultHeartbeat
	data, err := s.Patch()
	require.NoError(t, err)
	_, err = sink.Patch(t.Context(), s.Event(), data)
	require.NoError(t, err)
}

// ages are the ages at which writeSeries writes: those of the first occurrence, and of
// the latest one at each patch.
var ages = map[string][]time.Duration{
	singleton: {60 * time.Minute},
	ongoing:   {120 * time.Minute, 20 * time.Minute},
	finished:  {100 * time.Minute, 60 * time.Minute, 40 * time.Minute},
}

// writeSeries writes a singleton, an Ongoing series and a Finished series about an object.
func writeSeries(t *testing.T, sink events.EventSink, namespace string, regarding series.Reference, at func(age time.Duration) time.Time) {
	t.Helper()
	for kind, written := range ages {
		s := newSeries(namespace, kind, regarding, at(written[0]))
		create(t, sink, s)
		switch kind {
		case ongoing:
			patch(t, sink, s, series.Ongoing, finalCount, at(written[1]))
		case finished:
			patch(t, sink, s, series.Ongoing, someCount, at(written[1]))
			patch(t, sink, s, series.Finished, finalCount, at(written[2]))
		}
	}
}

// writeLegacy writes an Event as the legacy recorder of client-go does.
func writeLegacy(t *testing.T, namespace string, regarding *corev1.ObjectReference, at func(age time.Duration) time.Time) {
	t.Helper()
	_, err := apiserver.Clientset(t).CoreV1().Events(namespace).Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: regarding.Name + "." + legacy},
		InvolvedObject: *regarding,
		Type:           corev1.EventTypeWarning,
		Reason:         "BackOff",
		Message:        "back-off restarting the container",
		Source:         corev1.EventSource{Component: "kubelet", Host: "node-7"},
		FirstTimestamp: metav1.NewTime(at(140 * time.Minute)),
		LastTimestamp:  metav1.NewTime(at(80 * time.Minute)),
		Count:          5,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}
