package conformance

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
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
	started := func(b *compat.Broadcaster) record.EventBroadcaster {
		b.StartRecordingToSink(nil)
		return b
	}
	requests := make(map[string]int64)
	for _, program := range []struct {
		name        string
		deniesGroup bool // events.k8s.io
		start       func(*kubernetes.Clientset) record.EventBroadcaster
	}{
		{name: "client-go", start: legacy(direct, theirs)},
		{name: "client-go, custom sink", start: legacy(wrapped, theirs)},
		{name: "compat/record", start: legacy(direct, ours)},
		{name: "compat/record, custom sink", start: legacy(wrapped, ours)},
		{name: "compat.CoreSink", start: func(clients *kubernetes.Clientset) record.EventBroadcaster {
			return started(compat.NewBroadcaster(&compat.CoreSink{Interface: clients.CoreV1()}))
		}},
		{name: "compat.Sink", deniesGroup: true, start: func(clients *kubernetes.Clientset) record.EventBroadcaster {
			return started(compat.NewBroadcaster(compat.NewSink(clients)))
		}},
	} {
		t.Run(program.name, func(t *testing.T) {
			namespace := apiserver.Namespace(t)
			admin := apiserver.Clientset(t)
			watched, err := admin.CoreV1().Events(namespace).Watch(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			defer watched.Stop()
			config, count := counting(apiserver.Config(t), program.deniesGroup)
			broadcaster := program.start(kubernetes.NewForConfigOrDie(config))
			defer broadcaster.Shutdown()
			recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"})
			for i := range n {
				recorder.Eventf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}, "Normal", "Pulling", "pulled %d of %d layers", i+1, n)
				if ours, ok := broadcaster.(interface{ Events() *events.Broadcaster }); ok && i == n/2 {
					require.NoError(t, ours.Events().Flush(t.Context())) // so that the rest comes with a patch
				}
			}
			if program.name != "client-go" && program.name != "client-go, custom sink" { // their Shutdown does not wait
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
			requests[program.name] = count.Load()
		})
	}
	t.Logf("requests for %d messages: %v", n, requests)
	for name, requests := range requests {
		if !strings.HasPrefix(name, "client-go") {
			assert.LessOrEqual(t, requests, int64(11+1+4), name) // creates, the patch of the last Event, and a 403 for each in flight
		}
	}
}

// counting returns a configuration whose requests for Events are counted. If denied is
// set, those for the group events.k8s.io receive a 403.
func counting(config *rest.Config, denied bool) (*rest.Config, *atomic.Int64) {
	requests := new(atomic.Int64)
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return promhttp.RoundTripperFunc(func(req *http.Request) (*http.Response, error) {
			requests.Add(1)
			if denied && strings.HasPrefix(req.URL.Path, "/apis/events.k8s.io/") {
				return &http.Response{
					StatusCode: http.StatusForbidden, Request: req, Header: http.Header{"Content-Type": {"application/json"}},
					Body: http.NoBody,
				}, nil
			}
			return next.RoundTrip(req)
		})
	})
	return config, requests
}
