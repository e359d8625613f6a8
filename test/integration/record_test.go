package integration

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	eventseriesrecord "github.com/eventseries/eventseries/compat/record"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestRecordReplacesClientGo runs the same program with both recorders, as an account
// that may only create and patch Events of the core group. The Events must be the same to
// readers that ignore the fields of events.k8s.io/v1.
func TestRecordReplacesClientGo(t *testing.T) {
	t.Parallel()
	type content struct {
		about     corev1.ObjectReference
		reason    string
		message   string
		source    corev1.EventSource
		eventtype string
		count     int32
	}
	all := make(map[string][]content)
	for name, newBroadcaster := range map[string]func() record.EventBroadcaster{
		"client-go":   func() record.EventBroadcaster { return record.NewBroadcaster() },
		"eventseries": func() record.EventBroadcaster { return eventseriesrecord.NewBroadcaster() },
	} {
		namespace, admin := apiserver.Namespace(t), apiserver.Config(t)
		clients, account := apiserver.ClientsetFor(t, admin), accountIn(namespace)
		account.grant(t, clients, mayLead)
		config := account.config(admin)
		requests := recordRequests(config)
		broadcaster := newBroadcaster()
		t.Cleanup(broadcaster.Shutdown)
		broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: apiserver.ClientsetFor(t, config).CoreV1().Events(namespace)})
		pod := podIn(namespace, "a")
		pod.UID = "uid-of-a"
		begin := time.Now().Truncate(time.Second)
		for _, source := range []corev1.EventSource{
			{Component: "tester"},
			{Component: "tester", Host: "tester-0"},
			{Component: "Two Words", Host: "node-1"},
			{Component: "host_6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
			{Component: strings.Repeat("c", 100)},
		} {
			recorder := broadcaster.NewRecorder(scheme.Scheme, source)
			for range 3 {
				recorder.Eventf(pod, "Warning", "Failed", "failed on %s", "node-1")
			}
			recorder.Event(pod, "Normal", "Started", "95% %s")
		}
		const events, occurrences = 5 * 2, 5 * 4
		eventually(t, func(c *assert.CollectT) {
			list, err := clients.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
			require.NoError(c, err)
			require.Len(c, list.Items, events)
			var counted int32
			all[name] = nil
			for _, event := range list.Items {
				counted += event.Count
				assert.False(c, event.FirstTimestamp.Time.Before(begin))
				assert.False(c, event.LastTimestamp.Before(&event.FirstTimestamp))
				event.InvolvedObject.Namespace = strings.ReplaceAll(event.InvolvedObject.Namespace, namespace, "ns")
				all[name] = append(all[name], content{event.InvolvedObject, event.Reason, event.Message, event.Source, event.Type, event.Count})
			}
			require.EqualValues(c, occurrences, counted)
		})
		list, err := clients.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Len(t, list.Items, events)
		assert.Subset(t, []string{"create events", "patch events"}, slices.Collect(maps.Keys(requests.counts())), name)
	}
	assert.ElementsMatch(t, all["client-go"], all["eventseries"])
}
