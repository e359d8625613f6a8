package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	objectreference "k8s.io/client-go/tools/reference"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// In this file recorders of several kinds write to one server side by side, as in a
// cluster whose controllers do not all move on the same day. Those of this project
// are used as client-go's interfaces.

// legacyMakers make what a program gets from record.NewBroadcaster.
var legacyMakers = map[string]func(*kubernetes.Clientset) record.EventBroadcaster{
	"client-go's": func(*kubernetes.Clientset) record.EventBroadcaster { return record.NewBroadcaster() },
	"adapter": func(clients *kubernetes.Clientset) record.EventBroadcaster {
		return compat.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
	},
}

// newMakers make what a program gets from events.NewBroadcaster.
var newMakers = map[string]func(*kubernetes.Clientset) clientevents.EventBroadcaster{
	"client-go's": func(clients *kubernetes.Clientset) clientevents.EventBroadcaster {
		return clientevents.NewBroadcaster(&clientevents.EventSinkImpl{Interface: clients.EventsV1()})
	},
	"eventseries": func(clients *kubernetes.Clientset) clientevents.EventBroadcaster {
		return events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
	},
}

// podAndPart returns a reference to a Pod, and one to a part of it.
func podAndPart(t *testing.T, namespace string) (regarding, part *corev1.ObjectReference) {
	t.Helper()
	pod := podIn(namespace, "foo")
	regarding, err := objectreference.GetReference(scheme.Scheme, pod)
	require.NoError(t, err)
	part, err = objectreference.GetPartialReference(scheme.Scheme, pod, ".spec.containers[0]")
	require.NoError(t, err)
	return regarding, part
}

// TestOldAndNewSideBySide has an old recorder and a new one write about the same
// object. Everybody sees both Events, through both groups.
func TestOldAndNewSideBySide(t *testing.T) {
	t.Parallel()
	for oldName, newOld := range legacyMakers {
		for newName, newNew := range newMakers {
			if oldName == "client-go's" && newName == "client-go's" {
				continue // that is not to be tested here
			}
			t.Run(oldName+" and "+newName, func(t *testing.T) {
				t.Parallel()
				clients := apiserver.Clientset(t)
				namespace := apiserver.Namespace(t)
				regarding, part := podAndPart(t, namespace)

				older := newOld(clients)
				t.Cleanup(older.Shutdown)
				older.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events("")})
				older.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "old"}).
					Eventf(regarding, corev1.EventTypeNormal, "Started", "it runs")

				newer := newNew(clients)
				t.Cleanup(newer.Shutdown)
				require.NoError(t, newer.StartRecordingToSinkWithContext(t.Context()))
				newer.NewRecorder(scheme.Scheme, "example.com/new").
					Eventf(regarding, part, corev1.EventTypeNormal, "Killed", "Killing", "no memory")

				want := []string{"Killed by example.com/new", "Started by old"}
				apiserver.Eventually(t, patience, func(ctx context.Context) error {
					list, err := clients.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
					if err != nil {
						return err
					}
					got := make(map[string]bool)
					for _, event := range list.Items {
						got[event.Reason+" by "+event.ReportingController] = true
					}
					return same(want, got, len(list.Items))
				})
				list, err := clients.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				got := make(map[string]bool)
				for _, event := range list.Items {
					got[event.Reason+" by "+event.ReportingController] = true
					if event.Reason == "Killed" {
						assert.Equal(t, part, event.Related)
					}
				}
				require.NoError(t, same(want, got, len(list.Items)))
			})
		}
	}
}

// same returns an error unless there are those Events and no others.
func same(want []string, got map[string]bool, n int) error {
	names := slices.Sorted(maps.Keys(got))
	if !slices.Equal(want, names) || n != len(want) {
		return fmt.Errorf("%d Events: %v", n, names)
	}
	return nil
}

// TestSeriesThroughClientGosInterface emits twice: that is one Event on the server,
// a series that begins with a count of two.
func TestSeriesThroughClientGosInterface(t *testing.T) {
	t.Parallel()
	clients := apiserver.Clientset(t)
	namespace := apiserver.Namespace(t)
	regarding, part := podAndPart(t, namespace)
	broadcaster := newMakers["eventseries"](clients)
	t.Cleanup(broadcaster.Shutdown)
	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/new")
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	for range 2 {
		recorder.Eventf(regarding, part, corev1.EventTypeNormal, "Killed", "Killing", "no memory")
	}
	apiserver.Eventually(t, patience, func(ctx context.Context) error {
		found, err := eventsAbout(ctx, clients, namespace, regarding.UID)
		if err != nil {
			return err
		}
		if len(found) != 1 || found[0].Series == nil {
			return fmt.Errorf("%d Events, or no series", len(found))
		}
		return nil
	})
	event := eventAbout(t, clients, namespace, regarding.UID)
	assert.EqualValues(t, 2, event.Series.Count)
	core, err := clients.CoreV1().Events(namespace).Get(t.Context(), event.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, core.Series)
	assert.EqualValues(t, 2, core.Series.Count)
}

// TestAdapterOfClientGosInterface has both recorders of one adapter write about the
// same object.
func TestAdapterOfClientGosInterface(t *testing.T) {
	t.Parallel()
	clients := apiserver.Clientset(t)
	namespace := apiserver.Namespace(t)
	regarding, _ := podAndPart(t, namespace)
	//nolint:staticcheck // this is what is tested
	var adapter clientevents.EventBroadcasterAdapter = events.NewEventBroadcasterAdapterWithContext(t.Context(), clients)
	t.Cleanup(adapter.Shutdown)
	adapter.StartRecordingToSink(t.Context().Done())
	adapter.NewRecorder("example.com/new").Eventf(regarding, nil, corev1.EventTypeNormal, "Killed", "Killing", "no memory")
	adapter.DeprecatedNewLegacyRecorder("old").Event(regarding, corev1.EventTypeNormal, "Started", "it runs")
	apiserver.Eventually(t, patience, func(ctx context.Context) error {
		found, err := eventsAbout(ctx, clients, namespace, regarding.UID)
		if err != nil {
			return err
		}
		got := make(map[string]bool)
		for _, event := range found {
			got[event.Reason+" by "+event.ReportingController] = true
		}
		return same([]string{"Killed by example.com/new", "Started by old"}, got, len(found))
	})
}
