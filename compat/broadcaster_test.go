package compat

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
)

var _ resourcelock.EventRecorder = Recorder(nil)

// legacyWorld is a program of the legacy recorder after it has changed one line.
type legacyWorld struct {
	clients     *fake.Clientset
	broadcaster *Broadcaster
	recorder    record.EventRecorderLogger
}

func newLegacyWorld(t *testing.T, opts Options) *legacyWorld {
	t.Helper()
	clients := fake.NewClientset()
	w := &legacyWorld{
		clients:     clients,
		broadcaster: NewBroadcasterFor(events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()}), opts),
	}
	w.broadcaster.StartRecordingToSink(nil)
	t.Cleanup(w.broadcaster.Shutdown)
	w.recorder = w.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"})
	return w
}

// written returns what is on the server when all has been written.
func (w *legacyWorld) written(t *testing.T) []eventsv1.Event {
	t.Helper()
	require.NoError(t, w.broadcaster.Events().Flush(t.Context()))
	list, err := w.clients.EventsV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

// notes returns how often there was each note.
func (w *legacyWorld) notes(t *testing.T) map[string]int {
	t.Helper()
	notes := make(map[string]int)
	for _, event := range w.written(t) {
		notes[event.Note] += occurrences(&event)
	}
	return notes
}

func occurrences(event *eventsv1.Event) int {
	if event.Series == nil {
		return 1
	}
	return int(event.Series.Count)
}

func object(kind, name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: "ns", Name: name}
}

func TestLegacyCallSites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLegacyWorld(t, Options{})
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
		w.recorder.Event(pod, corev1.EventTypeWarning, "Full", "95%% full, %s")
		w.recorder.Eventf(pod, corev1.EventTypeNormal, "Created", "created %s", "b")
		w.recorder.AnnotatedEventf(pod, map[string]string{"example.com/a": "b"}, corev1.EventTypeNormal, "Annotated", "with %d", 1)
		past, ok := w.recorder.(Recorder)
		require.True(t, ok)
		past.PastEventf(pod, metav1.NewTime(time.Unix(0, 0)), corev1.EventTypeNormal, "Past", "it was")
		w.recorder.WithLogger(klog.Background()).Event(pod, corev1.EventTypeNormal, "Logged", "with a logger")
		record.NewEventRecorderAdapter(w.recorder).Eventf(pod, nil, corev1.EventTypeNormal, "Adapted", "Adapting", "there and back")

		byReason := make(map[string]eventsv1.Event)
		for _, event := range w.written(t) {
			byReason[event.Reason] = event
			assert.Equal(t, event.Reason, event.Action, "the reason stands in")
			assert.Equal(t, "tester", event.ReportingController)
			assert.Equal(t, "Pod", event.Regarding.Kind)
			assert.Nil(t, event.Related)
		}
		require.Len(t, byReason, 6)
		assert.Equal(t, "95%% full, %s", byReason["Full"].Note, "text is no format")
		assert.Equal(t, corev1.EventTypeWarning, byReason["Full"].Type)
		assert.Equal(t, "created b", byReason["Created"].Note)
		assert.Equal(t, "with 1", byReason["Annotated"].Note)
		assert.Equal(t, "b", byReason["Annotated"].Annotations["example.com/a"])
		assert.WithinDuration(t, time.Now(), byReason["Past"].EventTime.Time, 0)
	})
}

func TestActionOfLegacyEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLegacyWorld(t, Options{Action: func(regarding runtime.Object, reason string) string {
			switch reason {
			case "Created":
				return "Creating" + regarding.GetObjectKind().GroupVersionKind().Kind
			case "Panics":
				panic("no action")
			}
			return ""
		}})
		for _, reason := range []string{"Created", "Panics", "Other"} {
			w.recorder.Event(object("Job", "a"), corev1.EventTypeNormal, reason, "note")
		}
		actions := make(map[string]string)
		for _, event := range w.written(t) {
			actions[event.Reason] = event.Action
		}
		assert.Equal(t, map[string]string{"Created": "CreatingJob", "Panics": "Panics", "Other": "Other"}, actions)
	})
}

// A controller of CronJobs reports three events a minute for an hour. Their messages
// name the jobs, and the CronJob changes all the time.
func TestCronJobThroughTheAdapter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLegacyWorld(t, Options{})
		cronJob := object("CronJob", "backup")
		for minute := range 60 {
			job := fmt.Sprintf("backup-%d", minute)
			cronJob.ResourceVersion = fmt.Sprint(minute)
			w.recorder.Eventf(cronJob, corev1.EventTypeNormal, "SuccessfulCreate", "Created job %s", job)
			w.recorder.Eventf(cronJob, corev1.EventTypeNormal, "SawCompletedJob", "Saw completed job: %s, condition: Complete", job)
			w.recorder.Eventf(cronJob, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted job %s", job)
			time.Sleep(time.Minute)
		}
		notes := w.notes(t)
		assert.Len(t, notes, 180)
		for minute := range 60 {
			assert.Equal(t, 1, notes[fmt.Sprintf("Created job backup-%d", minute)])
			assert.Equal(t, 1, notes[fmt.Sprintf("Deleted job backup-%d", minute)])
		}
		assert.EqualValues(t, 180, w.broadcaster.Events().Stats().Occurrences)
		assert.Empty(t, w.broadcaster.Events().Stats().Dropped)
	})
}

// The same by a controller that has moved to the new interface, and names the job
// as the related object.
func TestCronJobWithRelatedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLegacyWorld(t, Options{})
		recorder := w.broadcaster.Events().NewRecorder(scheme.Scheme, "tester")
		cronJob := object("CronJob", "backup")
		for minute := range 60 {
			job := object("Job", fmt.Sprintf("backup-%d", minute))
			cronJob.ResourceVersion = fmt.Sprint(minute)
			for _, action := range []string{"CreateJob", "CompleteJob", "DeleteJob"} {
				recorder.Eventf(cronJob, job, corev1.EventTypeNormal, "ScheduleReached", action, "job %s", job.Name)
			}
			time.Sleep(time.Minute)
		}
		jobs := make(map[string]int)
		for _, event := range w.written(t) {
			require.NotNil(t, event.Related)
			jobs[event.Related.Name] += occurrences(&event)
		}
		assert.Len(t, jobs, 60)
		for name, n := range jobs {
			assert.Equal(t, 3, n, name)
		}
		assert.Empty(t, w.broadcaster.Events().Stats().Dropped)
	})
}

// The sample of the legacy design: 26 occurrences make 11 Events, as core/v1 shows
// them.
func TestSampleOfTheLegacyDesign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset()
		broadcaster := NewBroadcaster(&CoreSink{Interface: clients.CoreV1()})
		defer broadcaster.Shutdown()
		broadcaster.StartRecordingToSink(nil)
		recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "sample"})
		want := make(map[string]int32)
		emit := func(n int, about *corev1.ObjectReference, reason string) {
			for range n {
				recorder.Event(about, corev1.EventTypeNormal, reason, reason)
			}
			want[about.Name+" "+reason] = int32(n)
		}
		for i := range 4 {
			emit(1, object("Node", fmt.Sprint("node-", i)), "starting")
		}
		for i := range 5 {
			emit(4, object("Pod", fmt.Sprint("pod-", i)), "failedScheduling")
		}
		emit(1, object("Pod", "pod-0"), "pulled")
		emit(1, object("Pod", "pod-0"), "scheduled")
		require.NoError(t, broadcaster.Events().Flush(t.Context()))

		list, err := clients.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, 11)
		got := make(map[string]int32)
		for _, event := range list.Items {
			got[event.InvolvedObject.Name+" "+event.Reason] = event.Count
		}
		assert.Equal(t, want, got)
	})
}

// Ten thousand different messages in an hour cost few requests.
func TestHotLoopOfMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLegacyWorld(t, Options{})
		const n = 10_000
		for i := range n {
			w.recorder.Eventf(object("Pod", "a"), corev1.EventTypeWarning, "BackOff", "Back-off %ds restarting failed container", i)
			time.Sleep(time.Hour / n)
		}
		sum := 0
		for _, count := range w.notes(t) {
			sum += count
		}
		assert.Equal(t, n, sum)
		assert.LessOrEqual(t, int(w.broadcaster.Events().Stats().Requests()), 30)
	})
}

// controller-runtime starts it once for each of its providers, and what is given
// to it is not written to.
func TestStartRecordingToSinkAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLegacyWorld(t, Options{})
		for range 3 {
			w.broadcaster.StartRecordingToSink(coreSinkOfNoUse{t}).Stop()
		}
		w.recorder.Event(object("Pod", "a"), corev1.EventTypeNormal, "Tested", "note")
		assert.Equal(t, map[string]int{"note": 1}, w.notes(t))
	})
}

// coreSinkOfNoUse fails the test if something is written to it.
type coreSinkOfNoUse struct{ t *testing.T }

func (s coreSinkOfNoUse) Create(event *corev1.Event) (*corev1.Event, error) {
	s.t.Errorf("%s was created", event.Name)
	return event, nil
}

func (s coreSinkOfNoUse) Update(event *corev1.Event) (*corev1.Event, error) {
	s.t.Errorf("%s was updated", event.Name)
	return event, nil
}

func (s coreSinkOfNoUse) Patch(event *corev1.Event, _ []byte) (*corev1.Event, error) {
	s.t.Errorf("%s was patched", event.Name)
	return event, nil
}

// Without a Shutdown, the end of all recordings is the end of the writing.
func TestStopRecordingToSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broadcaster := NewBroadcaster(&events.EventSinkImpl{Interface: fake.NewClientset().EventsV1()})
		one, two := broadcaster.StartRecordingToSink(nil), broadcaster.StartRecordingToSink(nil)
		one.Stop()
		one.Stop()
		_, open := <-one.ResultChan()
		assert.False(t, open)
		broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"}).Event(object("Pod", "a"), corev1.EventTypeNormal, "Tested", "note")
		two.Stop()
		require.NoError(t, broadcaster.Events().Flush(t.Context()), "what there is, is written")
		time.Sleep(events.DefaultShutdownTimeout)
		// The bubble does not end while a goroutine is left.
	})
}

// What was started by itself is not started again, and not stopped.
func TestBroadcasterThatRunsAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged []string
		ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
		to := events.NewBroadcaster(&events.EventSinkImpl{Interface: fake.NewClientset().EventsV1()})
		require.NoError(t, to.StartRecordingToSinkWithContext(ctx))
		broadcaster := NewBroadcasterFor(to, Options{Context: context.WithoutCancel(ctx)})
		broadcaster.StartRecordingToSink(nil).Stop()
		assert.Empty(t, logged)
		time.Sleep(time.Minute)
		broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"}).Event(object("Pod", "a"), corev1.EventTypeNormal, "Tested", "note")
		require.NoError(t, to.Flush(t.Context()))
		broadcaster.Shutdown()
		broadcaster.StartRecordingToSink(nil).Stop()
		broadcaster.Shutdown()
		assert.Empty(t, to.Stats().Dropped)
	})
}

// A logger may use the broadcaster that it logs for.
func TestNoLoggerIsCalledUnderTheLock(t *testing.T) {
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
	assert.Equal(t, 1, logged, "there is no sink")
	broadcaster.Shutdown()
}

func TestContextEndsTheBroadcaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newLegacyWorld(t, Options{Context: ctx})
		w.recorder.Event(object("Pod", "a"), corev1.EventTypeNormal, "Tested", "note")
		cancel()
		synctest.Wait()
		assert.Equal(t, map[string]int{"note": 1}, w.notes(t))
		w.recorder.Event(object("Pod", "a"), corev1.EventTypeNormal, "Tested", "late")
		assert.EqualValues(t, 1, w.broadcaster.Events().Stats().Dropped[events.DropShutdown])
	})
}

func TestLegacyWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLegacyWorld(t, Options{})
		var mu sync.Mutex
		var watched []*corev1.Event
		var lines []string
		watching := w.broadcaster.StartEventWatcher(func(event *corev1.Event) {
			mu.Lock()
			defer mu.Unlock()
			watched = append(watched, event)
		})
		logging := w.broadcaster.StartLogging(func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, fmt.Sprintf(format, args...))
		})
		w.broadcaster.StartStructuredLogging(klog.Level(10)).Stop()
		w.broadcaster.StartEventWatcher(nil).Stop()
		w.recorder.Event(object("Pod", "a"), corev1.EventTypeWarning, "Tested", "note")
		synctest.Wait()
		watching.Stop()
		watching.Stop()
		logging.Stop()
		_, open := <-watching.ResultChan()
		assert.False(t, open)
		w.recorder.Event(object("Pod", "a"), corev1.EventTypeWarning, "Tested", "note")
		synctest.Wait()

		mu.Lock()
		defer mu.Unlock()
		require.Len(t, watched, 1)
		assert.Equal(t, "note", watched[0].Message)
		assert.EqualValues(t, 1, watched[0].Count)
		assert.Equal(t, "tester", watched[0].Source.Component)
		assert.Equal(t, watched[0].EventTime.Unix(), watched[0].LastTimestamp.Unix())
		require.Len(t, lines, 1)
		assert.Contains(t, lines[0], "type: 'Warning' reason: 'Tested' note")
	})
}

// The logger is that of the context, as with record.WithContext, and the line has
// the words of core/v1, which people search their logs for.
func TestLegacyStructuredLogging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []string
		logger := funcr.New(func(_, args string) {
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(args, "Event occurred") {
				lines = append(lines, args)
			}
		}, funcr.Options{Verbosity: 3})
		w := newLegacyWorld(t, Options{Context: klog.NewContext(context.Background(), logger)})
		w.broadcaster.StartStructuredLogging(3)
		w.broadcaster.StartStructuredLogging(4)
		about := object("Pod", "a")
		about.FieldPath = "spec.containers{main}"
		w.recorder.Event(about, corev1.EventTypeWarning, "Tested", "note")
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, lines, 1, "as verbose as the logger")
		for _, word := range []string{`"fieldPath"="spec.containers{main}"`, `"message"="note"`} {
			assert.Contains(t, lines[0], word)
		}
	})
}

// An identity of leader election is no name of a controller.
func TestLeaderElectionIsOneController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLegacyWorld(t, Options{})
		for _, component := range []string{
			"node-1_3f8e1c52-9f0e-4a3b-8a54-9d2f1c6f7b10",
			"my-operator-7c9d8b6f5-x2x7p_0b7e9a34-1c2d-4e5f-8a9b-0c1d2e3f4a5b",
		} {
			recorder := w.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
			recorder.Eventf(object("Lease", "lock"), corev1.EventTypeNormal, "LeaderElection", "%s became leader", component)
		}
		written := w.written(t)
		require.Len(t, written, 2)
		for _, event := range written {
			assert.Equal(t, LeaderElection, event.ReportingController)
			assert.Contains(t, event.Note, "became leader")
		}
		assert.Equal(t, "kube-scheduler", controllerOf("kube-scheduler"))
		assert.Equal(t, "with_underscore", controllerOf("with_underscore"))
	})
}
