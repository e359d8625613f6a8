package conformance

import (
	"context"
	"fmt"
	"sort"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	eventseriesrecord "github.com/eventseries/eventseries/compat/record"
)

// legacyProgram records events through the legacy interfaces and core/v1.
type legacyProgram struct {
	name        string // in legacyMakers
	clients     *fake.Clientset
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorderLogger
}

var legacyMakers = map[string]func(context.Context) record.EventBroadcaster{
	"client-go": func(ctx context.Context) record.EventBroadcaster {
		return record.NewBroadcaster(record.WithContext(ctx))
	},
	"eventseries": func(ctx context.Context) record.EventBroadcaster {
		return eventseriesrecord.NewBroadcaster(eventseriesrecord.WithContext(ctx))
	},
}

func newLegacyProgram(ctx context.Context, t *testing.T, name string) *legacyProgram {
	t.Helper()
	p := &legacyProgram{name: name, clients: fake.NewClientset()}
	p.broadcaster = legacyMakers[name](ctx)
	t.Cleanup(p.broadcaster.Shutdown)
	p.recorder = p.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"})
	return p
}

func (p *legacyProgram) start() {
	p.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: p.clients.CoreV1().Events("")})
}

func withBothLegacy(t *testing.T, test func(t *testing.T, p *legacyProgram)) {
	t.Helper()
	for name := range legacyMakers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newLegacyProgram(context.Background(), t, name)
				p.start()
				test(t, p)
			})
		})
	}
}

// stored returns all Events on the server in the order of firstTimestamp.
func (p *legacyProgram) stored(t *testing.T) []corev1.Event {
	t.Helper()
	list, err := p.clients.CoreV1().Events(metav1.NamespaceAll).List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	sort.Slice(list.Items, func(i, j int) bool {
		return list.Items[i].FirstTimestamp.Time.Before(list.Items[j].FirstTimestamp.Time)
	})
	return list.Items
}

func (p *legacyProgram) verbs() []string {
	var verbs []string
	for _, action := range p.clients.Actions() {
		if verb := action.GetVerb(); verb != "list" {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

func part(uid, path string) *corev1.ObjectReference {
	about := pod("a")
	about.UID, about.FieldPath = types.UID("uid-"+uid), path
	return about
}

// TestLegacyEvents compares the Events of legacy calls.
//
// Different on purpose: Events of this recorder also have the fields of
// events.k8s.io/v1: action, eventTime, reportingInstance and series.
func TestLegacyEvents(t *testing.T) {
	type content struct {
		about       corev1.ObjectReference
		namespace   string
		reason      string
		message     string
		source      corev1.EventSource
		controller  string
		eventtype   string
		count       int32
		first, last time.Time
		annotation  string
	}
	all := make(map[string][]content)
	withBothLegacy(t, func(t *testing.T, p *legacyProgram) {
		if ours, ok := p.broadcaster.(*eventseriesrecord.Broadcaster); ok {
			defer func() { assert.Empty(t, ours.Events().Stats().Dropped) }()
		}
		one, two := part("1", "spec.containers{a}"), part("2", "spec.containers{b}")
		whole := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-1"}}
		for _, call := range []func(){
			func() { p.recorder.Eventf(one, "Normal", "Started", "started: %v", 1) },
			func() { p.recorder.Eventf(whole, "Normal", "Killed", "killed: %v", 1) },
			func() { p.recorder.Eventf(one, "Normal", "Started", "started: %v", 1) },
			func() { p.recorder.Eventf(two, "Normal", "Started", "started: %v", 1) },
			func() { p.recorder.Event(one, "Normal", "Started", "started: 1") },
			func() { p.recorder.Eventf(two, "Normal", "Stopped", "stopped: %v", 1) },
			func() { p.recorder.Eventf(two, "Normal", "Stopped", "stopped: %v", 1) },
			func() { p.recorder.Event(two, "Warning", "Stopped", "100% %s") },
			func() {
				p.recorder.AnnotatedEventf(two, map[string]string{"example.com/a": "b"}, "Normal", "Pulled", "on %s", "node-1")
			},
		} {
			call()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		p.broadcaster.Shutdown()
		for _, event := range p.stored(t) {
			all[p.name] = append(all[p.name], content{
				event.InvolvedObject, event.Namespace, event.Reason, event.Message, event.Source, event.ReportingController,
				event.Type, event.Count, event.FirstTimestamp.UTC(), event.LastTimestamp.UTC(), event.Annotations["example.com/a"],
			})
		}
	})
	require.Len(t, all["client-go"], 6)
	assert.Equal(t, all["client-go"], all["eventseries"])
	assert.EqualValues(t, 3, all["eventseries"][0].count)
	assert.Equal(t, "b", all["eventseries"][5].annotation)
}

func TestLegacyEventAboutAClusterScopedObject(t *testing.T) {
	withBothLegacy(t, func(t *testing.T, p *legacyProgram) {
		about := part("1", "spec")
		about.Namespace = ""
		p.recorder.Event(about, "Normal", "Started", "it runs")
		synctest.Wait()
		stored := p.stored(t)
		require.Len(t, stored, 1)
		assert.Empty(t, stored[0].InvolvedObject.Namespace)
		assert.Equal(t, metav1.NamespaceDefault, stored[0].Namespace)
	})
}

// TestLegacyLogs requires equal lines from both kinds of logging, in the logger of
// the context.
func TestLegacyLogs(t *testing.T) {
	type logged struct{ lines, structured []string }
	all := make(map[string]logged)
	for name := range legacyMakers {
		synctest.Test(t, func(t *testing.T) {
			var plain, structured lines
			p := newLegacyProgram(klog.NewContext(context.Background(), structured.logger()), t, name)
			watching := p.broadcaster.StartLogging(func(format string, args ...any) { plain.add(fmt.Sprintf(format, args...)) })
			structuring := p.broadcaster.StartStructuredLogging(0)
			p.recorder.Eventf(part("1", "spec.containers{a}"), "Warning", "Failed", "failed: %d", 1)
			synctest.Wait()
			watching.Stop()
			structuring.Stop()
			p.recorder.Eventf(part("1", "spec.containers{a}"), "Warning", "Failed", "failed: %d", 1)
			synctest.Wait()
			all[name] = logged{plain.get(), structured.get()}
		})
	}
	require.Len(t, all["client-go"].lines, 1)
	require.Len(t, all["client-go"].structured, 1)
	assert.Equal(t, all["client-go"], all["eventseries"])
}

// TestLegacyEnd requires that the end of the context and Shutdown stop everything.
// The bubble fails the test if a goroutine is left.
func TestLegacyEnd(t *testing.T) {
	for name := range legacyMakers {
		for way, end := range map[string]func(cancel func(), p *legacyProgram){
			"context":  func(cancel func(), _ *legacyProgram) { cancel() },
			"shutdown": func(_ func(), p *legacyProgram) { p.broadcaster.Shutdown() },
			"both":     func(cancel func(), p *legacyProgram) { cancel(); p.broadcaster.Shutdown() },
		} {
			t.Run(name+" by "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					p := newLegacyProgram(ctx, t, name)
					p.start()
					p.broadcaster.StartStructuredLogging(0)
					p.broadcaster.StartEventWatcher(func(*corev1.Event) {})
					end(cancel, p)
					synctest.Wait()
					p.recorder.Event(pod("a"), "Normal", "Late", "too late")
					synctest.Wait()
					assert.Empty(t, p.verbs())
					p.broadcaster.StartEventWatcher(func(*corev1.Event) {}).Stop()
				})
			})
		}
	}
}
