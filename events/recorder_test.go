package events

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/series"
)

var (
	_ EventBroadcaster = (*Broadcaster)(nil)
	_ Recorder         = (*recorder)(nil)
	_ EventSink        = (*EventSinkImpl)(nil)
	_ EventLister      = (*EventSinkImpl)(nil)
)

func TestInvalidEventsAreDropped(t *testing.T) {
	for _, tt := range []struct {
		name      string
		regarding runtime.Object
		eventtype string
		reason    DropReason
	}{
		{"no object", nil, "Normal", DropInvalidObject},
		{"no type", testPod(0), "", DropInvalidType},
		{"wrong type", testPod(0), "Error", DropInvalidType},
		{"type in lower case", testPod(0), "normal", DropInvalidType},
		{"type with a space", testPod(0), "Normal ", DropInvalidType},
		{"wrong type of nothing", nil, "Error", DropInvalidType},
		// No request can be made for these.
		{"namespace that is no path segment", &corev1.ObjectReference{Namespace: "a/b"}, "Normal", DropInvalidObject},
		{"namespace above", &corev1.ObjectReference{Namespace: ".."}, "Normal", DropInvalidObject},
	} {
		runInBubble(t, tt.name, Options{}, func(t *testing.T, w *world) {
			w.recorder.Eventf(tt.regarding, nil, tt.eventtype, "Tested", "Testing", "note %d", 1)
			synctest.Wait() // the dispatcher may log it
			assert.Equal(t, map[DropReason]uint64{tt.reason: 1}, w.broadcaster.Stats().Dropped)
			assert.EqualValues(t, 1, w.broadcaster.Stats().Occurrences)
			assert.Len(t, w.logs.with("Dropped events", string(tt.reason), "note 1"), 1)
			drops := w.dropped()
			require.Len(t, drops, 1)
			assert.Equal(t, "note 1", drops[0].Note)
			assert.Equal(t, tt.eventtype, drops[0].Key.Type)
			assert.Empty(t, w.server.log())
		})
	}
}

// What the API server would reject is repaired. Tests of package sanitize have each repair.
func TestRepairedEventsAreValid(t *testing.T) {
	for name, text := range map[string]string{"long": strings.Repeat("x", 300), "not UTF-8": "caf\xe9!"} {
		runInBubble(t, name, Options{ReportingInstance: text}, func(t *testing.T, w *world) {
			recorder := w.broadcaster.NewRecorder(testScheme(), text+"/"+text).(Recorder)
			pod := testPod(0)
			pod.Name = text[:min(len(text), 253)]
			annotations := map[string]string{text: text, "large": strings.Repeat(text, 1000)}
			for range 2 {
				recorder.AnnotatedEventf(pod, nil, annotations, "Normal", text, text, "%s", strings.Repeat(text, 20))
				w.flush(t)
			}
			assert.EqualValues(t, 2, countOf(w.server.only(t)))
		})
	}
}

// The log names an object to which no reference can be made, in few words.
func TestInvalidObjectsAreNamedInTheLog(t *testing.T) {
	long := strings.Repeat("n", 1<<20)
	for name, tt := range map[string]struct {
		object runtime.Object
		words  []string
	}{
		"kind unknown": {&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}},
			[]string{"*v1.PartialObjectMetadata shop/cart"}},
		"name too long": {&corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: long},
			[]string{"name has 1048576 bytes, more than 253", strings.Repeat("n", 61) + "…", `"namespace"="shop"`}},
		"uid too long": {&corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "cart", UID: types.UID(long)}, []string{"uid has", `"name"="cart"`}},
	} {
		runInBubble(t, name, Options{}, func(t *testing.T, w *world) {
			w.recorder.Eventf(tt.object, nil, "Normal", "Tested", "Testing", "note")
			w.recorder.Eventf(testPod(0), tt.object, "Normal", "Tested", "Testing", "note")
			w.flush(t)
			assert.Equal(t, map[DropReason]uint64{DropInvalidObject: 1}, w.broadcaster.Stats().Dropped)
			assert.EqualValues(t, 1, w.broadcaster.Stats().RelatedOmitted)
			assert.Nil(t, w.server.only(t).Related)
			assert.Len(t, w.logs.with(append(tt.words, "Dropped events", string(DropInvalidObject))...), 1)
			assert.Len(t, w.logs.with(append(tt.words, "incomplete")...), 1)
			for _, line := range w.logs.with() {
				assert.Less(t, len(line), 2000)
			}
		})
	}
}

// Two objects that are to be created with a generateName are one to the recorder.
func TestObjectsWithoutAName(t *testing.T) {
	nameless := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "web-"}}
	uid := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", UID: "uid"}}
	for _, tt := range []struct {
		name               string
		regarding, related runtime.Object
		lines              int
	}{
		{"named", testPod(0), testPod(1), 0},
		{"UID", uid, nil, 0},
		{"regarding", nameless, nil, 1},
		{"related", testPod(0), nameless, 1},
	} {
		runInBubble(t, tt.name, Options{}, func(t *testing.T, w *world) {
			for i := range 3 {
				w.recorder.Eventf(tt.regarding, tt.related, "Normal", fmt.Sprint("Tested", i), "Testing", "note")
			}
			assert.Len(t, w.logs.with("about an object without a name", "Tested0", "Pod"), tt.lines)
			assert.Empty(t, w.broadcaster.Stats().Dropped)
		})
	}
}

func TestInvalidRelatedObjectIsOmitted(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		for _, related := range []runtime.Object{(*corev1.Pod)(nil), (*corev1.ObjectReference)(nil), &runtime.Unknown{}} {
			w.recorder.Eventf(testPod(0), related, "Normal", "Tested", "Testing", "note")
		}
		w.flush(t)
		event := w.server.only(t)
		assert.EqualValues(t, 3, countOf(event))
		assert.Nil(t, event.Related)
		assert.EqualValues(t, 3, w.broadcaster.Stats().RelatedOmitted)
		assert.Len(t, w.logs.with("incomplete", "its related object", "pod-0"), 1)
	})
}

func TestAnnotations(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		recorder, ok := w.recorder.(Recorder)
		require.True(t, ok)
		emit := func(annotations map[string]string) {
			recorder.AnnotatedEventf(testPod(0), nil, annotations, "Normal", "Tested", "Testing", "note")
		}
		annotations := map[string]string{"a": "1", "b": "1"}
		emit(annotations)
		annotations["a"] = "changed by the caller" // before it is written
		w.flush(t)
		assert.Equal(t, map[string]string{"a": "1", "b": "1"}, w.server.only(t).Annotations)

		emit(map[string]string{"b": "2"})
		w.flush(t)
		want := map[string]string{"a": "1", "b": "2", series.AnnotationHeartbeat: "30m"}
		assert.Equal(t, want, w.server.only(t).Annotations)

		// An ongoing series takes annotations without an additional request.
		n := len(w.server.log())
		emit(map[string]string{"c": "3"})
		emit(nil)
		synctest.Wait()
		assert.Len(t, w.server.log(), n)
		w.flush(t)
		want["c"] = "3"
		assert.Equal(t, want, w.server.only(t).Annotations)
		assert.EqualValues(t, 4, countOf(w.server.only(t)))
	})
}

func TestInvalidAnnotationsAreOmitted(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		annotations := map[string]string{"good": "1", "not good": "2", series.AnnotationLastNote: "x"}
		before := maps.Clone(annotations)
		for range 3 {
			w.recorder.(Recorder).AnnotatedEventf(testPod(0), nil, annotations, "Normal", "Tested", "Testing", "note")
		}
		w.flush(t)
		assert.Equal(t, map[string]string{"good": "1", series.AnnotationHeartbeat: "30m"}, w.server.only(t).Annotations)
		assert.EqualValues(t, 3, w.broadcaster.Stats().AnnotationsOmitted)
		assert.Len(t, w.logs.with("incomplete", "some annotations", "not good", "pod-0"), 1)
		assert.Equal(t, before, annotations, "the caller's map is left alone")
	})
}

// The latest note is that of the latest occurrence, whoever watches.
func TestLastNote(t *testing.T) {
	say := func(w *world, note string, args ...any) {
		w.recorder.Eventf(testPod(0), nil, "Normal", "Tested", "Testing", note, args...)
	}
	for name, program := range map[string]func(w *world) (last string){
		"progress": func(w *world) string {
			for i := range 5 {
				say(w, "%d of 4 groups ready", i)
				time.Sleep(time.Second)
			}
			return "4 of 4 groups ready"
		},
		"retries": func(w *world) string {
			for i := range 66 {
				say(w, "attempt %d failed, retrying", i+1)
				time.Sleep(time.Second)
			}
			say(w, "gave up after 66 attempts")
			return "gave up after 66 attempts"
		},
		"ten a second": func(w *world) string {
			for i := range 600 {
				say(w, "step %d", i)
				time.Sleep(time.Second / 10)
			}
			say(w, "done")
			return "done"
		},
		"beside a hot loop": func(w *world) string {
			for i := range 10_000 {
				w.recorder.Eventf(testPod(1), nil, "Normal", "Tested", "Testing", "step %d", i)
				if i%1000 == 0 {
					say(w, "thousand %d", i)
				}
				time.Sleep(time.Second / 5000)
			}
			return "thousand 9000"
		},
		"annotations": func(w *world) string {
			for _, cause := range []string{"a", "b", "c"} {
				w.recorder.(Recorder).AnnotatedEventf(testPod(0), nil, map[string]string{"cause": cause}, "Normal", "Tested", "Testing", "because of %s", cause)
			}
			return "because of c"
		},
	} {
		for _, watched := range []bool{false, true} {
			runInBubble(t, fmt.Sprintf("%s, watched=%t", name, watched), Options{}, func(t *testing.T, w *world) {
				if watched {
					stop, err := w.broadcaster.StartEventWatcher(func(runtime.Object) {})
					require.NoError(t, err)
					defer stop()
				}
				want := program(w)
				w.flush(t)
				for _, event := range w.server.list() {
					if event.Regarding.Name != testPod(0).Name {
						continue
					}
					assert.Equal(t, want, event.Annotations[series.AnnotationLastNote])
					if cause, ok := event.Annotations["cause"]; ok {
						assert.Equal(t, "because of "+cause, want)
					}
				}
			})
		}
	}
}

// counter is an argument that counts how often it is formatted.
type counter struct {
	n         int
	formatted *int
}

func (c counter) String() string { *c.formatted++; return strconv.Itoa(c.n) }

func TestDistinctNotesOfOneRecorder(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		emit := func(distinct int) {
			recorder := w.broadcaster.NewRecorderWithOptions(testScheme(), fmt.Sprint(controller, distinct), RecorderOptions{DistinctNotes: distinct})
			for i := range 5 {
				recorder.Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note %d", i)
			}
		}
		notes := make(map[string][]string)
		for _, distinct := range []int{-1, 0, 1, 2} {
			emit(distinct)
		}
		w.flush(t)
		for _, event := range w.server.list() {
			notes[event.ReportingController] = append(notes[event.ReportingController], fmt.Sprint(event.Note, " x", countOf(event)))
		}
		assert.Equal(t, []string{"note 0 x5"}, notes[controller+"-1"])
		assert.Equal(t, []string{"note 0 x5"}, notes[controller+"0"])
		assert.ElementsMatch(t, []string{"note 0 x1", "(combined from similar events): note 1 x4"}, notes[controller+"1"])
		assert.ElementsMatch(t, []string{"note 0 x1", "note 1 x1", "(combined from similar events): note 2 x3"}, notes[controller+"2"])
	})
}

func TestDistinctNotesAfterRestart(t *testing.T) {
	for name, restart := range restarts {
		runBubble(t, name, func(t *testing.T) {
			s := newLister()
			for _, instance := range []string{"tester-1", restart.instance} {
				w := startOn(t, s.server, s, Options{
					Scope: restart.scope, listLimit: listLimit(restart.list), ReportingInstance: instance,
				})
				recorder := w.distinct(2)
				w.list()
				time.Sleep(time.Second)
				for i := range 4 {
					for range 2 {
						recorder.Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "job %d is done", i)
					}
				}
				w.broadcaster.Shutdown()
			}
			if restart.list {
				assert.Equal(t, 1+2, s.requestsOf("list"), "nothing, then two pages")
			}
			counts := make(map[string]int32)
			for _, event := range s.list() {
				counts[event.Note] = countOf(event)
			}
			assert.Equal(t, map[string]int32{
				"job 0 is done": 4, "job 1 is done": 4, "(combined from similar events): job 2 is done": 8,
			}, counts)
			s.assertNoProblems(t)
		})
	}
}

func TestEventfAllocatesNothing(t *testing.T) {
	typed, meta := metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, testPod(0).ObjectMeta
	for name, object := range map[string]runtime.Object{
		"typed":                testPod(0),
		"typed, with TypeMeta": &corev1.Pod{TypeMeta: typed, ObjectMeta: meta},
		"partial metadata":     &metav1.PartialObjectMetadata{TypeMeta: typed, ObjectMeta: meta},
		"reference":            &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod-0"},
		"unstructured": &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Backup", "metadata": map[string]any{"namespace": "ns", "name": "pod-0"},
		}},
	} {
		runBubble(t, name, func(t *testing.T) { // no time passes, so the note is not sampled
			w := newWorld(t, Options{})
			w.start(t)
			formatted := 0
			args := []any{counter{1, &formatted}}
			emit := func() { w.recorder.Eventf(object, object, "Warning", "BackOff", "Restarting", "note %v", args...) }
			emit()
			emit()
			synctest.Wait()
			formatted = 0
			assert.Zero(t, testing.AllocsPerRun(100, emit))
			assert.Zero(t, formatted)
		})
	}
}
