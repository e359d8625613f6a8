package eventstest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
)

var (
	pod  = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-7", UID: "pod-uid", ResourceVersion: "42"}}
	node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-2"}}

	podType = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	podRef  = corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "cart-7", UID: "pod-uid"}
	nodeRef = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "worker-2"}
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func TestRecorderKeepsEvents(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	r := NewRecorderWithOptions(t, Options{ReportingController: "example.com/scheduler", Clock: clock})
	r.Eventf(pod, node, corev1.EventTypeWarning, "UntoleratedTaint", "Schedule", "taint %s of %d", "gpu", 3)
	clock.SetTime(noon.Add(time.Second))
	annotations := map[string]string{"example.com/attempt": "3"}
	r.AnnotatedEventf(node, nil, annotations, corev1.EventTypeNormal, "Maintenance", "Drain", "95% done")
	annotations["example.com/attempt"] = "4"

	want := []Event{{
		Regarding: podRef, Related: nodeRef, Type: "Warning", Reason: "UntoleratedTaint", Action: "Schedule",
		Note: "taint gpu of 3", Time: noon, ReportingController: "example.com/scheduler",
	}, {
		Regarding: nodeRef, Type: "Normal", Reason: "Maintenance", Action: "Drain", Note: "95% done",
		Annotations: map[string]string{"example.com/attempt": "3"}, Time: noon.Add(time.Second), ReportingController: "example.com/scheduler",
	}}
	require.Equal(t, want, r.Events())

	waited, err := r.Wait(t.Context(), Want{Reason: "Maintenance"})
	require.NoError(t, err)
	for _, copies := range [][]Event{r.Events(), r.Find(Want{Reason: "Maintenance"}), {waited}} {
		copies[0].Reason = "changed"
		for _, event := range copies {
			clear(event.Annotations)
		}
	}
	assert.Equal(t, want, r.Events(), "the test has copies")
	r.Reset()
	assert.Empty(t, r.Events())
}

func TestRecorderImplementsTheInterfaces(t *testing.T) {
	r := NewRecorder(t)
	var client clientevents.EventRecorderLogger = r
	client = client.WithLogger(klog.Background())
	client.Eventf(pod, nil, corev1.EventTypeNormal, "Bound", "Schedule", "bound")
	client.(events.AnnotatedEventRecorder).AnnotatedEventf(pod, nil, map[string]string{"a": "1"}, corev1.EventTypeNormal, "Bound", "Schedule", "bound")
	r.Named("other").Eventf(pod, nil, corev1.EventTypeNormal, "Bound", "Schedule", "bound")
	legacy := r.Legacy()
	legacy.Event(pod, corev1.EventTypeNormal, "Bound", "95% of %s")
	legacy.Eventf(pod, corev1.EventTypeNormal, "Bound", "%d%%", 95)
	legacy.WithLogger(klog.Background()).AnnotatedEventf(pod, map[string]string{"a": "1"}, corev1.EventTypeNormal, "Bound", "%s", "bound")

	var got []string
	for _, e := range r.Events() {
		got = append(got, fmt.Sprint(e.ReportingController, " ", e))
		assert.Empty(t, e.Problems)
	}
	assert.Equal(t, []string{
		`eventstest Normal Bound (Schedule) Pod shop/cart-7: "bound"`,
		`eventstest Normal Bound (Schedule) Pod shop/cart-7: "bound" map[a:1]`,
		`other Normal Bound (Schedule) Pod shop/cart-7: "bound"`,
		`eventstest Normal Bound (Bound) Pod shop/cart-7: "95% of %s"`,
		`eventstest Normal Bound (Bound) Pod shop/cart-7: "95%"`,
		`eventstest Normal Bound (Bound) Pod shop/cart-7: "bound" map[a:1]`,
	}, got)
}

// Unlike this recorder, client-go's FakeRecorder blocks when its channel is full.
func TestRecorderNeverBlocks(t *testing.T) {
	var r Recorder
	const emitters, each = 8, 1000
	var wg sync.WaitGroup
	for i := range emitters {
		wg.Go(func() {
			for n := range each {
				r.Named(fmt.Sprint("controller-", i)).Eventf(pod, nil, corev1.EventTypeNormal, "Bound", "Schedule", "bound")
				r.WithLogger(klog.Background())
				if i == 0 && n%100 == 0 {
					r.Find(Want{Reason: "Other"})
				}
			}
		})
	}
	wg.Wait()
	assert.Len(t, r.Events(), emitters*each)
	for i := range emitters {
		assert.Len(t, r.Find(Want{ReportingController: fmt.Sprint("controller-", i)}), each)
	}
	recorded := r.Events()
	for i := range recorded[1:] {
		assert.False(t, recorded[i+1].Time.Before(recorded[i].Time))
	}
}

// crd is a type that the scheme does not know.
type crd struct{ corev1.Pod }

type panicker struct{ corev1.Pod }

func (*panicker) GetName() string { panic("no name today") }

// emission is a call of AnnotatedEventf.
type emission struct {
	regarding, related              runtime.Object
	annotations                     map[string]string
	eventtype, reason, action, note string
	args                            []any
}

func TestProblemsFailTheTest(t *testing.T) {
	unknown := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}}}
	annotate := func(key, value string) func(*emission) {
		return func(e *emission) { e.annotations = map[string]string{key: value} }
	}
	for name, row := range map[string]struct {
		change     func(*emission)
		controller string
		field      string
		class      Class
		lost       bool
		others     int // further problems
	}{
		"nil object":       {change: func(e *emission) { e.regarding = nil }, field: "regarding", lost: true},
		"unknown type":     {change: func(e *emission) { e.regarding = &crd{} }, field: "regarding", lost: true},
		"nil pointer":      {change: func(e *emission) { e.regarding = (*corev1.Pod)(nil) }, field: "regarding", lost: true},
		"nil reference":    {change: func(e *emission) { e.regarding = (*corev1.ObjectReference)(nil) }, field: "regarding", lost: true},
		"unknown kind":     {change: func(e *emission) { e.regarding = unknown }, field: "regarding", lost: true},
		"panicking object": {change: func(e *emission) { e.regarding = &panicker{corev1.Pod{TypeMeta: podType}} }, field: "regarding", lost: true},
		"namespace": {
			change: func(e *emission) { e.regarding = &corev1.ObjectReference{Kind: "Pod", Namespace: "a/b", Name: "x"} },
			field:  "namespace", lost: true, others: 1,
		},
		"nil related object":       {change: func(e *emission) { e.related = (*corev1.Node)(nil) }, field: "related", class: ClassRecorder},
		"type":                     {change: func(e *emission) { e.eventtype = "Error" }, field: "type", lost: true},
		"no type":                  {change: func(e *emission) { e.eventtype = "" }, field: "type", lost: true},
		"no reason":                {change: func(e *emission) { e.reason = "" }, field: "reason"},
		"no action":                {change: func(e *emission) { e.action = "" }, field: "action"},
		"long reason":              {change: func(e *emission) { e.reason = strings.Repeat("R", 129) }, field: "reason"},
		"long note":                {change: func(e *emission) { e.note = strings.Repeat("n", 1025) }, field: "note"},
		"wrong argument":           {change: func(e *emission) { e.note, e.args = "%d pods", []any{"three"} }, field: "note", class: ClassRecorder},
		"missing argument":         {change: func(e *emission) { e.note, e.args = "%d of %d pods", []any{3} }, field: "note", class: ClassRecorder},
		"invalid UTF-8":            {change: func(e *emission) { e.note = "caf\xe9" }, field: "note", class: ClassRecorder},
		"annotation key":           {change: annotate("not a key", "1"), field: "metadata.annotations"},
		"reserved annotation":      {change: annotate(series.AnnotationPrefix+"x", "1"), field: "metadata.annotations[" + series.AnnotationPrefix + "x]", class: ClassRecorder},
		"annotation without UTF-8": {change: annotate("a", "caf\xe9"), field: "metadata.annotations[a]", class: ClassRecorder},
		"too much for recorders":   {change: annotate("a", strings.Repeat("a", 64<<10)), field: "metadata.annotations", class: ClassRecorder},
		"too much for servers":     {change: annotate("a", strings.Repeat("a", 256<<10)), field: "metadata.annotations", others: 1},
		"controller":               {change: func(*emission) {}, controller: "two words", field: "reportingController"},
	} {
		t.Run(name, func(t *testing.T) {
			e := emission{regarding: pod, eventtype: "Normal", reason: "Bound", action: "Schedule"}
			row.change(&e)
			emit := func(tb testing.TB) *Recorder {
				r := NewRecorderWithOptions(tb, Options{ReportingController: row.controller})
				r.AnnotatedEventf(e.regarding, e.related, e.annotations, e.eventtype, e.reason, e.action, e.note, e.args...)
				return r
			}
			inner := &tb{}
			recorded := emit(inner).Events()
			require.Len(t, recorded, 1, "the recorder keeps it")
			problems := recorded[0].Problems
			require.Len(t, problems, 1+row.others, "%v", problems)
			assert.Equal(t, row.field, problems[0].Field)
			assert.NotEmpty(t, problems[0].Detail)
			assert.Equal(t, row.class, problems[0].Class)
			assert.Equal(t, row.lost, problems[0].Lost)
			assert.Contains(t, inner.take(), fmt.Sprintf("eventstest: event %v: %v", recorded[0], problems[0]))

			lenient := emit(nil)
			lenient.Check(inner, ClassStyle)
			assert.Empty(t, inner.take())
			assert.False(t, lenient.Check(inner))
			assert.Contains(t, inner.take(), problems[0].String())
		})
	}
}

func TestGoodEventsHaveNoProblems(t *testing.T) {
	inner := &tb{}
	r := NewRecorderWithOptions(inner, Options{Style: true})
	r.Eventf(pod, node, "Normal", "Bound", "Schedule", "bound to %s, 95%%! full: %v", node.Name, errors.New("%!d(string=x)"))
	r.Eventf(node, nil, "Warning", "Maintenance", "Drain", strings.Repeat("n", 1024))
	r.Eventf(&corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "system:strange NAME"}, nil, "Normal", "Bound", "Schedule", "100%d%!")
	r.AnnotatedEventf(pod, nil, map[string]string{"example.com/A": ""}, "Normal", "Bound", "Schedule", "")
	r.Legacy().Event(pod, "Normal", "Bound", "bound")
	r.Check(inner)
	assert.Empty(t, inner.take())
}

func TestStyleFailsTheTestIfRequested(t *testing.T) {
	for _, style := range []bool{false, true} {
		inner := &tb{}
		r := NewRecorderWithOptions(inner, Options{Style: style})
		r.Eventf(pod, nil, "Normal", "Created-job-17", "CreateJob", "created job %d", 17)
		want := `reason: "Created-job-17": must be UpperCamelCase, a word from a small fixed set`
		reported := inner.take()
		assert.Equal(t, style, strings.Contains(reported, want))
		assert.Equal(t, style, reported != "")
		assert.False(t, r.Check(inner))
		require.Equal(t, `eventstest: event #1, Normal Created-job-17 (CreateJob) Pod shop/cart-7: "created job 17": `+want, inner.take())
		assert.True(t, r.Check(inner, ClassRules, ClassRecorder))
		assert.Empty(t, inner.take())
	}
}

// A controller may outlive its test, and testing panics if a test fails after its end.
func TestNothingIsReportedAfterTheTest(t *testing.T) {
	inner := &tb{}
	r := NewRecorder(inner)
	inner.end()
	r.Eventf(nil, nil, "", "", "", "")
	assert.Empty(t, inner.take())
	assert.Len(t, r.Events(), 1)
}

func TestScheme(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("Thing"), &corev1.Pod{})
	r := NewRecorderWithOptions(t, Options{Scheme: s})
	r.Eventf(pod, nil, "Normal", "Bound", "Schedule", "")
	assert.Equal(t, "Thing", r.Events()[0].Regarding.Kind)

	// As with a broadcaster, built-in types need not be in it.
	r = NewRecorderWithOptions(t, Options{Scheme: runtime.NewScheme()})
	r.Eventf(pod, nil, "Normal", "Bound", "Schedule", "")
	assert.Equal(t, "Pod", r.Events()[0].Regarding.Kind)
	r.Expect(t, Want{Regarding: pod})
}
