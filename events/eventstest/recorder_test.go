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
)

var (
	pod  = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-7", UID: "pod-uid", ResourceVersion: "42"}}
	node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-2"}}

	podRef  = corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "cart-7", UID: "pod-uid"}
	nodeRef = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "worker-2"}
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func TestRecorderKeepsWhatIsEmitted(t *testing.T) {
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

	r.Events()[0].Reason = "changed"
	assert.Equal(t, want, r.Events(), "what it returns is a copy")
	r.Reset()
	assert.Empty(t, r.Events())
}

func TestRecorderIsADropIn(t *testing.T) {
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

// client-go's FakeRecorder blocks when its channel is full.
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

type panicker struct{ corev1.Pod }

func (*panicker) GetName() string { panic("no name today") }

func TestRecorderFailsTheTestAtOnce(t *testing.T) {
	unknown := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}}}
	for name, row := range map[string]struct {
		emit   func(events.Recorder)
		field  string
		class  Class
		lost   bool
		others int // further problems
	}{
		"nil object":  {emit: func(r events.Recorder) { r.Eventf(nil, nil, "Normal", "Bound", "Schedule", "") }, field: "regarding", lost: true},
		"nil pointer": {emit: func(r events.Recorder) { r.Eventf((*corev1.Pod)(nil), nil, "Normal", "Bound", "Schedule", "") }, field: "regarding", lost: true},
		"nil reference": {emit: func(r events.Recorder) {
			r.Eventf((*corev1.ObjectReference)(nil), nil, "Normal", "Bound", "Schedule", "")
		}, field: "regarding", lost: true},
		"unknown kind": {emit: func(r events.Recorder) { r.Eventf(unknown, nil, "Normal", "Bound", "Schedule", "") }, field: "regarding", lost: true},
		"panicking object": {emit: func(r events.Recorder) {
			r.Eventf(&panicker{corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}}, nil, "Normal", "Bound", "Schedule", "")
		}, field: "regarding", lost: true},
		"related is nil":   {emit: func(r events.Recorder) { r.Eventf(pod, (*corev1.Node)(nil), "Normal", "Bound", "Schedule", "") }, field: "related", class: ClassRecorder},
		"type":             {emit: func(r events.Recorder) { r.Eventf(pod, nil, "Error", "Bound", "Schedule", "") }, field: "type", lost: true},
		"no type":          {emit: func(r events.Recorder) { r.Eventf(pod, nil, "", "Bound", "Schedule", "") }, field: "type", lost: true},
		"no reason":        {emit: func(r events.Recorder) { r.Eventf(pod, nil, "Normal", "", "Schedule", "") }, field: "reason"},
		"no action":        {emit: func(r events.Recorder) { r.Eventf(pod, nil, "Normal", "Bound", "", "") }, field: "action"},
		"long reason":      {emit: func(r events.Recorder) { r.Eventf(pod, nil, "Normal", strings.Repeat("R", 129), "Schedule", "") }, field: "reason"},
		"long note":        {emit: func(r events.Recorder) { r.Eventf(pod, nil, "Normal", "Bound", "Schedule", strings.Repeat("n", 1025)) }, field: "note"},
		"wrong format":     {emit: func(r events.Recorder) { r.Eventf(pod, nil, "Normal", "Bound", "Schedule", "%d pods", "three") }, field: "note", class: ClassRecorder},
		"argument missing": {emit: func(r events.Recorder) { r.Eventf(pod, nil, "Normal", "Bound", "Schedule", "%d of %d pods", 3) }, field: "note", class: ClassRecorder},
		"no UTF-8":         {emit: func(r events.Recorder) { r.Eventf(pod, nil, "Normal", "Bound", "Schedule", "caf\xe9") }, field: "note", class: ClassRecorder},
		"annotation key": {emit: func(r events.Recorder) {
			r.AnnotatedEventf(pod, nil, map[string]string{"not a key": "1"}, "Normal", "Bound", "Schedule", "")
		}, field: "metadata.annotations"},
		"reserved annotation": {emit: func(r events.Recorder) {
			r.AnnotatedEventf(pod, nil, map[string]string{"eventseries.dev/state": "Finished"}, "Normal", "Bound", "Schedule", "")
		}, field: "metadata.annotations[eventseries.dev/state]", class: ClassRecorder},
		"annotation without UTF-8": {emit: func(r events.Recorder) {
			r.AnnotatedEventf(pod, nil, map[string]string{"a": "caf\xe9"}, "Normal", "Bound", "Schedule", "")
		}, field: "metadata.annotations[a]", class: ClassRecorder},
		"annotations beyond the recorder": {emit: func(r events.Recorder) {
			r.AnnotatedEventf(pod, nil, map[string]string{"a": strings.Repeat("a", 64<<10)}, "Normal", "Bound", "Schedule", "")
		}, field: "metadata.annotations", class: ClassRecorder},
		"annotations beyond the server": {emit: func(r events.Recorder) {
			r.AnnotatedEventf(pod, nil, map[string]string{"a": strings.Repeat("a", 256<<10)}, "Normal", "Bound", "Schedule", "")
		}, field: "metadata.annotations", others: 1},
		"namespace": {emit: func(r events.Recorder) {
			r.Eventf(&corev1.ObjectReference{Kind: "Pod", Namespace: "a/b", Name: "x"}, nil, "Normal", "Bound", "Schedule", "")
		}, field: "namespace", lost: true, others: 1},
		"controller": {emit: func(r events.Recorder) {
			r.(*Recorder).Named("two words").Eventf(pod, nil, "Normal", "Bound", "Schedule", "")
		}, field: "reportingController"},
	} {
		t.Run(name, func(t *testing.T) {
			inner := &tb{}
			r := NewRecorder(inner)
			row.emit(r)
			recorded := r.Events()
			require.Len(t, recorded, 1, "it is kept all the same")
			problems := recorded[0].Problems
			require.Len(t, problems, 1+row.others, "%v", problems)
			assert.Equal(t, row.field, problems[0].Field)
			assert.Equal(t, row.class, problems[0].Class)
			assert.Equal(t, row.lost, problems[0].Lost)
			assert.Contains(t, inner.take(), fmt.Sprintf("eventstest: event %v: %v", recorded[0], problems[0]))

			var lenient Recorder
			if name != "controller" {
				row.emit(&lenient)
				lenient.Check(inner, ClassStyle)
				inner.assertPassed(t)
				assert.False(t, lenient.Check(inner))
				assert.Contains(t, inner.take(), problems[0].String())
			}
		})
	}
}

func TestRecorderHasNothingToSayAboutWhatIsFine(t *testing.T) {
	inner := &tb{}
	r := NewRecorderWithOptions(inner, Options{Style: true})
	r.Eventf(pod, node, "Normal", "Bound", "Schedule", "bound to %s, 95%% full: %v", node.Name, errors.New("%!d(string=x)"))
	r.Eventf(node, nil, "Warning", "Maintenance", "Drain", strings.Repeat("n", 1024))
	r.Eventf(&corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "system:strange NAME"}, nil, "Normal", "Bound", "Schedule", "100%d")
	r.AnnotatedEventf(pod, nil, map[string]string{"example.com/A": ""}, "Normal", "Bound", "Schedule", "")
	r.Legacy().Event(pod, "Normal", "Bound", "bound")
	r.Check(inner)
	inner.assertPassed(t)
}

func TestStyleFailsTheTestWhereItIsAskedFor(t *testing.T) {
	for _, style := range []bool{false, true} {
		inner := &tb{}
		r := NewRecorderWithOptions(inner, Options{Style: style})
		r.Eventf(pod, nil, "Normal", "Created-job-17", "CreateJob", "created job %d", 17)
		want := `reason: "Created-job-17": must be UpperCamelCase, a word from a small fixed set`
		if style {
			assert.Contains(t, inner.take(), want)
		} else {
			inner.assertPassed(t)
		}
		assert.False(t, r.Check(inner))
		inner.requireFailed(t, `eventstest: event #1, Normal Created-job-17 (CreateJob) Pod shop/cart-7: "created job 17": `+want)
		assert.True(t, r.Check(inner, ClassRules, ClassRecorder))
		inner.assertPassed(t)
	}
}

// A controller can go on when its test has ended; testing would panic.
func TestNothingIsReportedToATestThatHasEnded(t *testing.T) {
	inner := &tb{}
	r := NewRecorder(inner)
	inner.end()
	r.Eventf(nil, nil, "", "", "", "")
	inner.assertPassed(t)
	assert.Len(t, r.Events(), 1)
}

func TestObjectsOfOtherSchemes(t *testing.T) {
	type crd struct{ corev1.Pod }
	var lenient Recorder
	lenient.Eventf(&crd{}, nil, "Normal", "Bound", "Schedule", "")
	require.Len(t, lenient.Events()[0].Problems, 1)
	assert.Contains(t, lenient.Events()[0].Problems[0].String(), "cannot be referenced")

	s := runtime.NewScheme()
	s.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("Thing"), &corev1.Pod{})
	r := NewRecorderWithOptions(t, Options{Scheme: s})
	r.Eventf(pod, nil, "Normal", "Bound", "Schedule", "")
	assert.Equal(t, "Thing", r.Events()[0].Regarding.Kind)
}
