package conformance

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/eventseries/eventseries/compat"
	eventseriesrecord "github.com/eventseries/eventseries/compat/record"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m)) }

// customSink is a legacy sink of a program.
type customSink struct{ record.EventSink }

// TestLatestMessageOnAServer emits messages that carry progress. Whoever reads core/v1, such
// as kubectl get events, sees the latest one, as with client-go.
//
// Different on purpose: the note of events.k8s.io/v1, through which client-go's series and
// events.EventSinkImpl write, cannot change.
func TestLatestMessageOnAServer(t *testing.T) {
	const n, last = 30, "(combined from similar events): pulled 30 of 30 layers"
	correlator := record.CorrelatorOptions{BurstSize: 2 * n} // the spam filter of client-go drops events
	legacy := func(wrap func(record.EventSink) record.EventSink, newBroadcaster func() record.EventBroadcaster) func(*kubernetes.Clientset) record.EventBroadcaster {
		return func(clients *kubernetes.Clientset) record.EventBroadcaster {
			b := newBroadcaster()
			b.StartRecordingToSink(wrap(&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events("")}))
			return b
		}
	}
	direct := func(sink record.EventSink) record.EventSink { return sink }
	wrapped := func(sink record.EventSink) record.EventSink { return customSink{sink} }
	theirs := func() record.EventBroadcaster { return record.NewBroadcasterWithCorrelatorOptions(correlator) }
	ours := func() record.EventBroadcaster { return eventseriesrecord.NewBroadcaster() }
	for name, start := range map[string]func(*kubernetes.Clientset) record.EventBroadcaster{
		"client-go":                  legacy(direct, theirs),
		"client-go, custom sink":     legacy(wrapped, theirs),
		"compat/record":              legacy(direct, ours),
		"compat/record, custom sink": legacy(wrapped, ours),
		"compat.Sink": func(clients *kubernetes.Clientset) record.EventBroadcaster {
			b := compat.NewBroadcaster(compat.NewSink(clients))
			b.StartRecordingToSink(nil)
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := apiserver.Namespace(t)
			admin := apiserver.Clientset(t)
			watched, err := admin.CoreV1().Events(namespace).Watch(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			defer watched.Stop()
			config := apiserver.Config(t)
			config.QPS = -1
			broadcaster := start(kubernetes.NewForConfigOrDie(config))
			defer broadcaster.Shutdown()
			recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"})
			for i := range n {
				recorder.Eventf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}, "Normal", "Pulling", "pulled %d of %d layers", i+1, n)
				if ours, ok := broadcaster.(interface{ Events() *events.Broadcaster }); ok && i == n/2 {
					require.NoError(t, ours.Events().Flush(t.Context())) // so that the rest comes with a patch
				}
			}
			if !strings.HasPrefix(name, "client-go") { // their Shutdown does not wait
				broadcaster.Shutdown()
			}
			seen := ""
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for seen != last {
				select {
				case change := <-watched.ResultChan():
					if event, ok := change.Object.(*corev1.Event); ok {
						seen = event.Message
					}
				case <-ctx.Done():
					require.Fail(t, "the watcher last read "+seen)
				}
			}
			list, err := admin.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			messages := make([]string, 0, len(list.Items))
			total := 0
			for _, event := range list.Items {
				messages = append(messages, event.Message)
				total += int(event.Count)
			}
			assert.Contains(t, messages, last)
			assert.Equal(t, n, total, strings.Join(messages, "\n"))
		})
	}
}
