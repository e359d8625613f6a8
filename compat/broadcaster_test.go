package compat

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/apigroup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ resourcelock.EventRecorder = NewRecorder(nil, nil)

// legacyProgram is a program that calls NewBroadcasterFor instead of
// record.NewBroadcaster.
type legacyProgram struct {
	clients     *fake.Clientset
	broadcaster *Broadcaster
	recorder    record.EventRecorderLogger
}

func startLegacyProgram(t *testing.T, opts Options) *legacyProgram {
	t.Helper()
	clients := fake.NewClientset()
	target := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
	p := &legacyProgram{clients: clients, broadcaster: NewBroadcasterFor(target, opts)}
	p.broadcaster.StartRecordingToSink(nil)
	t.Cleanup(p.broadcaster.Shutdown)
	p.recorder = newTester(p.broadcaster)
	return p
}

func newTester(b *Broadcaster) record.EventRecorderLogger {
	return b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"})
}

// emit emits an event with the given note.
func emit(to record.EventRecorder, note string) {
	to.Event(object("Pod", "a"), corev1.EventTypeWarning, "Tested", note)
}

// written flushes the broadcaster and returns the Events on the server.
func (p *legacyProgram) written(t *testing.T) []eventsv1.Event {
	t.Helper()
	require.NoError(t, p.broadcaster.Events().Flush(t.Context()))
	list, err := p.clients.EventsV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

// count sums the occurrences of Events by the given name.
func count(all []eventsv1.Event, by func(*eventsv1.Event) string) map[string]int {
	counts := make(map[string]int)
	for _, event := range all {
		counts[by(&event)] += int(apigroup.ToCoreWithDeprecatedFields(&event).Count)
	}
	return counts
}

func byNote(event *eventsv1.Event) string { return event.Note }

func object(kind, name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: "ns", Name: name}
}

func TestLegacyCallSites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startLegacyProgram(t, Options{})
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
		p.recorder.Event(pod, corev1.EventTypeWarning, "Full", "95%% full, %s")
		p.recorder.Eventf(pod, corev1.EventTypeNormal, "Created", "created %s", "b")
		p.recorder.AnnotatedEventf(pod, map[string]string{"example.com/a": "b"}, corev1.EventTypeNormal, "Annotated", "with %d", 1)
		p.recorder.WithLogger(klog.Background()).Event(pod, corev1.EventTypeNormal, "Logged", "with a logger")
		record.NewEventRecorderAdapter(p.recorder).Eventf(pod, nil, corev1.EventTypeNormal, "Adapted", "Adapting", "there and back")

		byReason := make(map[string]eventsv1.Event)
		for _, event := range p.written(t) {
			byReason[event.Reason] = event
			assert.Equal(t, event.Reason, event.Action, "action defaults to reason")
			assert.Equal(t, "tester", event.ReportingController)
			assert.Equal(t, "Pod", event.Regarding.Kind)
			assert.Nil(t, event.Related)
		}
		require.Len(t, byReason, 5)
		assert.Equal(t, "95%% full, %s", byReason["Full"].Note, "Event does not format")
		assert.Equal(t, corev1.EventTypeWarning, byReason["Full"].Type)
		assert.Equal(t, "created b", byReason["Created"].Note)
		assert.Equal(t, "with 1", byReason["Annotated"].Note)
		assert.Equal(t, "b", byReason["Annotated"].Annotations["example.com/a"])
	})
}

// A structured recorder for a legacy one keeps what that has room for.
func TestNewStructuredRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startLegacyProgram(t, Options{})
		structured := NewStructuredRecorder(p.recorder)
		structured.Eventf(object("Pod", "a"), object("Node", "b"), corev1.EventTypeNormal, "Bound", "Bind", "bound to %s", "b")
		Annotated(structured).AnnotatedEventf(object("Pod", "a"), nil, map[string]string{"example.com/a": "b"}, corev1.EventTypeNormal, "Started", "Start", "%d", 1)
		all := p.written(t)
		require.Len(t, all, 2)
		slices.SortFunc(all, func(a, b eventsv1.Event) int { return strings.Compare(a.Reason, b.Reason) })
		assert.Equal(t, "Bind", all[0].Action)
		assert.Equal(t, "Node", all[0].Related.Kind)
		assert.Equal(t, "bound to b", all[0].Note)
		assert.Equal(t, "b", all[1].Annotations["example.com/a"])
	})

	fake := record.NewFakeRecorder(2) // of somebody else
	structured := NewStructuredRecorder(fake)
	structured.Eventf(object("Pod", "a"), object("Node", "b"), corev1.EventTypeNormal, "Bound", "Bind", "bound to %s", "b")
	Annotated(structured).AnnotatedEventf(object("Pod", "a"), nil, map[string]string{"a": "b"}, corev1.EventTypeNormal, "Started", "Start", "%d", 1)
	assert.Equal(t, "Normal Bound bound to b", <-fake.Events)
	assert.Regexp(t, `^Normal Started 1 ?map\[a:b\]$`, <-fake.Events)
}

// plain has no method for annotations.
type plain struct{ clientevents.EventRecorder }

func TestAnnotatedWithoutAnnotations(t *testing.T) {
	fake := clientevents.NewFakeRecorder(1)
	Annotated(plain{fake}).AnnotatedEventf(object("Pod", "a"), nil, map[string]string{"a": "b"}, corev1.EventTypeNormal, "Started", "Start", "%d", 1)
	assert.Equal(t, "Normal Started 1", <-fake.Events)
}

func TestOptionsAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startLegacyProgram(t, Options{Action: func(regarding runtime.Object, reason string) string {
			switch reason {
			case "Created":
				return "Creating" + regarding.GetObjectKind().GroupVersionKind().Kind
			case "Panics":
				panic("no action")
			}
			return ""
		}})
		for _, reason := range []string{"Created", "Panics", "Other"} {
			p.recorder.Event(object("Job", "a"), corev1.EventTypeNormal, reason, "note")
		}
		actions := count(p.written(t), func(event *eventsv1.Event) string { return event.Action })
		assert.Equal(t, map[string]int{"CreatingJob": 1, "Panics": 1, "Other": 1}, actions)
	})
}

// controller-runtime calls StartRecordingToSink once for each of its providers.
func TestStartRecordingToSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients, ignored := fake.NewClientset(), fake.NewClientset()
		broadcaster := NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
		start := func() watch.Interface {
			return broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: ignored.CoreV1().Events("")})
		}
		recording := start()
		for range 3 {
			start().Stop()
		}
		stopped := start()
		stopped.Stop()
		stopped.Stop()
		_, open := <-stopped.ResultChan()
		assert.False(t, open)
		emit(newTester(broadcaster), "note")
		recording.Stop()
		p := &legacyProgram{clients: clients, broadcaster: broadcaster}
		assert.Equal(t, map[string]int{"note": 1}, count(p.written(t), byNote), "pending events are written")
		assert.Empty(t, ignored.Actions())
		time.Sleep(10 * time.Second)
		// The bubble deadlocks if a goroutine remains.
	})
}

func TestTargetStartedByItsOwnerKeepsRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged []string
		ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
		to := events.NewBroadcaster(&events.EventSinkImpl{Interface: fake.NewClientset().EventsV1()})
		require.NoError(t, to.StartRecordingToSinkWithContext(ctx))
		broadcaster := NewBroadcasterFor(to, Options{Context: context.WithoutCancel(ctx)})
		broadcaster.StartRecordingToSink(nil).Stop()
		assert.Empty(t, logged)
		time.Sleep(time.Minute)
		emit(newTester(broadcaster), "note")
		require.NoError(t, to.Flush(t.Context()))
		broadcaster.Shutdown()
		broadcaster.StartRecordingToSink(nil).Stop()
		broadcaster.Shutdown()
		assert.Empty(t, to.Stats().Dropped)
	})
}

// controller-runtime starts its recording while it stops, perhaps after the program has shut
// the broadcaster down.
func TestStartAfterShutdownIsNoError(t *testing.T) {
	var logged []string
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	broadcaster := NewBroadcasterFor(events.NewBroadcaster(&events.EventSinkImpl{Interface: fake.NewClientset().EventsV1()}), Options{Context: ctx})
	broadcaster.Shutdown()
	for _, w := range []watch.Interface{
		broadcaster.StartRecordingToSink(nil),
		broadcaster.StartEventWatcher(func(*corev1.Event) {}),
		broadcaster.StartStructuredLogging(0),
	} {
		w.Stop()
	}
	assert.Empty(t, logged)
}

// A logger may call the broadcaster.
func TestBroadcasterLogsWithoutLock(t *testing.T) {
	var broadcaster *Broadcaster
	logged := 0
	logger := funcr.New(func(string, string) {
		logged++
		if assert.True(t, broadcaster.mu.TryLock()) {
			broadcaster.mu.Unlock()
		}
	}, funcr.Options{})
	broadcaster = NewBroadcasterFor(events.NewBroadcaster(nil), Options{Context: klog.NewContext(t.Context(), logger)})
	broadcaster.StartRecordingToSink(nil).Stop()
	assert.Equal(t, 1, logged, "the sink is missing")
	broadcaster.Shutdown()
}

func TestContextShutsTheBroadcasterDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := startLegacyProgram(t, Options{Context: ctx})
		emit(p.recorder, "note")
		cancel()
		synctest.Wait()
		assert.Equal(t, map[string]int{"note": 1}, count(p.written(t), byNote))
		emit(p.recorder, "late")
		assert.EqualValues(t, 1, p.broadcaster.Events().Stats().Dropped["Shutdown"])
	})
}

func TestLegacyWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var watched []*corev1.Event
		var structured []string
		logger := funcr.New(func(_, args string) {
			if strings.Contains(args, "Event occurred") {
				structured = append(structured, args)
			}
		}, funcr.Options{Verbosity: 3})
		p := startLegacyProgram(t, Options{Context: klog.NewContext(context.Background(), logger)})
		watches := []watch.Interface{
			p.broadcaster.StartEventWatcher(func(event *corev1.Event) { watched = append(watched, event) }),
			p.broadcaster.StartEventWatcher(nil),
			p.broadcaster.StartStructuredLogging(3),
			p.broadcaster.StartStructuredLogging(4), // the logger discards it
		}
		emit(p.recorder, "note")
		synctest.Wait()
		for _, w := range watches {
			w.Stop()
			w.Stop()
			_, open := <-w.ResultChan()
			assert.False(t, open)
		}
		emit(p.recorder, "after Stop")
		synctest.Wait()

		require.Len(t, watched, 1)
		assert.Equal(t, "note", watched[0].Message)
		assert.EqualValues(t, 1, watched[0].Count)
		assert.Equal(t, "tester", watched[0].Source.Component)
		assert.Equal(t, watched[0].EventTime.Unix(), watched[0].LastTimestamp.Unix())
		assert.Len(t, structured, 1)
	})
}

func TestNewRecorderOnARecorderWithoutLogger(t *testing.T) {
	fake := events.NewFakeRecorder(1)
	recorder := NewRecorder(struct{ events.EventRecorder }{fake}, nil)
	recorder.WithLogger(klog.Background()).Event(&corev1.Pod{}, corev1.EventTypeNormal, "Created", "100%")
	assert.Equal(t, "Normal Created 100%", <-fake.Events)
}

// The legacy recorder of client-go writes the host as source.host and as reportingInstance.
func TestNewRecorderKeepsTheHost(t *testing.T) {
	for name, newSink := range map[string]func(*fake.Clientset) events.EventSink{
		"events": func(c *fake.Clientset) events.EventSink { return &events.EventSinkImpl{Interface: c.EventsV1()} },
		"core":   func(c *fake.Clientset) events.EventSink { return &CoreSink{Interface: c.CoreV1()} },
	} {
		synctest.Test(t, func(t *testing.T) {
			clients := fake.NewClientset()
			b := NewBroadcaster(newSink(clients))
			var written, watched []corev1.EventSource
			b.StartEventWatcher(func(event *corev1.Event) { watched = append(watched, event.Source) })
			b.StartRecordingToSink(nil)
			for _, host := range []string{"node-1", "node-2", ""} {
				recorder := b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester", Host: host})
				emit(recorder, "from "+host)
				emit(recorder, "from "+host) // a create and a patch
				synctest.Wait()
			}
			b.Shutdown()

			list, err := clients.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for _, event := range list.Items {
				written = append(written, event.Source)
			}
			want := []corev1.EventSource{{Component: "tester", Host: "node-1"}, {Component: "tester", Host: "node-2"}, {Component: "tester"}}
			assert.Equal(t, want, slices.Compact(watched), name)
			if name == "core" {
				assert.ElementsMatch(t, want, written)
				return
			}
			newList, err := clients.EventsV1().Events("ns").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Len(t, newList.Items, 3)
			for _, event := range newList.Items {
				assert.Zero(t, event.DeprecatedSource, "events.k8s.io/v1 rejects it")
				if host := strings.TrimPrefix(event.Note, "from "); host != "" {
					assert.Equal(t, host, event.ReportingInstance)
				} else {
					assert.Regexp(t, "^tester-.", event.ReportingInstance, "the default")
				}
			}
		})
	}
}

func TestLeaderElectionIsOneController(t *testing.T) {
	for component, want := range map[string]string{
		"node-1_3f8e1c52-9f0e-4a3b-8a54-9d2f1c6f7b10":                      LeaderElection,
		"my-operator-7c9d8b6f5-x2x7p_0b7e9a34-1c2d-4e5f-8a9b-0c1d2e3f4a5b": LeaderElection,
		"kube-scheduler":  "kube-scheduler",
		"with_underscore": "with_underscore",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := startLegacyProgram(t, Options{})
			emit(p.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}), component+" became leader")
			written := p.written(t)
			require.Len(t, written, 1)
			assert.Equal(t, want, written[0].ReportingController)
			assert.Equal(t, component+" became leader", written[0].Note)
		})
	}
}
