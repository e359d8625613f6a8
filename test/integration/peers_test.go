package integration

import (
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

// recorders are a legacy recorder and a new one, through the interfaces of
// client-go.
type recorders struct {
	legacy record.EventRecorder
	new    clientevents.EventRecorder
}

// withBroadcasters starts a legacy broadcaster and a new one.
func withBroadcasters(
	newLegacy func(*kubernetes.Clientset) record.EventBroadcaster,
	newNew func(*kubernetes.Clientset) clientevents.EventBroadcaster,
) func(*testing.T, *kubernetes.Clientset) recorders {
	return func(t *testing.T, clients *kubernetes.Clientset) recorders {
		legacy, newer := newLegacy(clients), newNew(clients)
		t.Cleanup(legacy.Shutdown)
		t.Cleanup(newer.Shutdown)
		legacy.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events("")})
		require.NoError(t, newer.StartRecordingToSinkWithContext(t.Context()))
		return recorders{
			legacy.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "old"}),
			newer.NewRecorder(scheme.Scheme, "example.com/new"),
		}
	}
}

// withAdapter starts the adapter, which has recorders of both kinds.
func withAdapter(t *testing.T, clients *kubernetes.Clientset) recorders {
	//nolint:staticcheck // the deprecated adapter is under test
	var adapter clientevents.EventBroadcasterAdapter = events.NewEventBroadcasterAdapterWithContext(t.Context(), clients)
	t.Cleanup(adapter.Shutdown)
	adapter.StartRecordingToSink(t.Context().Done())
	return recorders{adapter.DeprecatedNewLegacyRecorder("old"), adapter.NewRecorder("example.com/new")}
}

// TestRecordersOfSeveralKinds has a legacy recorder and a new one, of client-go
// or of this project, write about the same object. Both API groups show both
// Events.
func TestRecordersOfSeveralKinds(t *testing.T) {
	t.Parallel()
	const killed, started = "Killed by example.com/new", "Started by old"
	clientGoLegacy := func(*kubernetes.Clientset) record.EventBroadcaster { return record.NewBroadcaster() }
	legacy := func(clients *kubernetes.Clientset) record.EventBroadcaster {
		return compat.NewBroadcaster(eventsSink(clients))
	}
	clientGo := func(clients *kubernetes.Clientset) clientevents.EventBroadcaster {
		return clientevents.NewBroadcaster(&clientevents.EventSinkImpl{Interface: clients.EventsV1()})
	}
	eventseries := func(clients *kubernetes.Clientset) clientevents.EventBroadcaster {
		return events.NewBroadcaster(eventsSink(clients))
	}
	for name, start := range map[string]func(*testing.T, *kubernetes.Clientset) recorders{
		"client-go legacy and eventseries":   withBroadcasters(clientGoLegacy, eventseries),
		"eventseries legacy and client-go":   withBroadcasters(legacy, clientGo),
		"eventseries legacy and eventseries": withBroadcasters(legacy, eventseries),
		"adapter":                            withAdapter,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clients, namespace := apiserver.Clientset(t), apiserver.Namespace(t)
			pod := podIn(namespace, "foo")
			regarding, err := objectreference.GetReference(scheme.Scheme, pod)
			require.NoError(t, err)
			related, err := objectreference.GetPartialReference(scheme.Scheme, pod, ".spec.containers[0]")
			require.NoError(t, err)
			r := start(t, clients)
			r.legacy.Eventf(regarding, corev1.EventTypeNormal, "Started", "it runs")
			r.new.Eventf(regarding, related, corev1.EventTypeNormal, "Killed", "Killing", "no memory")

			eventually(t, func(c *assert.CollectT) {
				newList, err := clients.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
				require.NoError(c, err)
				coreList, err := clients.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
				require.NoError(c, err)
				var got []string
				for _, event := range newList.Items {
					got = append(got, event.Reason+" by "+event.ReportingController)
				}
				for _, event := range coreList.Items {
					got = append(got, event.Reason+" by "+event.ReportingController)
					if event.Reason == "Killed" {
						assert.Equal(c, related, event.Related)
					}
				}
				assert.ElementsMatch(c, []string{killed, killed, started, started}, got)
			})
		})
	}
}
