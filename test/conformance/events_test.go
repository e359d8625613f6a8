package conformance

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"

	eventseries "github.com/eventseries/eventseries/events"
)

// emission is one call of AnnotatedEventf.
type emission struct {
	regarding, related              runtime.Object
	annotations                     map[string]string
	eventtype, reason, action, note string
	args                            []any
}

func (e emission) emit(to events.EventRecorder) {
	to.(events.AnnotatedEventRecorder).AnnotatedEventf(e.regarding, e.related, e.annotations, e.eventtype, e.reason, e.action, e.note, e.args...)
}

// emissions are those of which both recorders make an Event.
func emissions(t *testing.T) map[string]emission {
	t.Helper()
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-1", ResourceVersion: "7"}
	}
	container, err := reference.GetPartialReference(scheme.Scheme, &corev1.Pod{ObjectMeta: meta("ns", "a")}, "spec.containers{main}")
	require.NoError(t, err)
	node := &corev1.Node{ObjectMeta: meta("", "node-1")}
	return map[string]emission{
		"about an object": {
			regarding: &corev1.Pod{ObjectMeta: meta("ns", "a")},
			eventtype: "Normal", reason: "Started", action: "Starting", note: "it runs",
		},
		"with a related object and arguments": {
			regarding: &corev1.Pod{ObjectMeta: meta("ns", "a")}, related: node,
			eventtype: "Warning", reason: "Unschedulable", action: "Scheduling", note: "no room on %s: %d%%", args: []any{"node-1", 95},
		},
		"about a part of an object": {
			regarding: container, related: container,
			eventtype: "Normal", reason: "Pulled", action: "Pulling", note: "pulled",
		},
		"with annotations": {
			regarding: &corev1.Pod{ObjectMeta: meta("ns", "a")}, annotations: map[string]string{"example.com/a": "b"},
			eventtype: "Normal", reason: "Started", action: "Starting", note: "it runs",
		},
		"an action in lower case": {
			regarding: &corev1.Pod{ObjectMeta: meta("ns", "a")},
			eventtype: "Normal", reason: "started", action: "starting", note: "it runs",
		},
		"about an object that says its kind": {
			regarding: &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Capsule"}, ObjectMeta: meta("ns", "a")},
			eventtype: "Normal", reason: "Started", action: "Starting", note: "it runs",
		},
		"about an object in no namespace": {
			regarding: node,
			eventtype: "Normal", reason: "Started", action: "Starting", note: "it runs",
		},
		"about an object whose name is none for an Event": {
			regarding: &networkingv1.IPAddress{ObjectMeta: meta("", "2001:db8::42")},
			eventtype: "Warning", reason: "Leaked", action: "Allocating", note: "nobody has it",
		},
		"about an object with a very long name": {
			regarding: &corev1.Pod{ObjectMeta: meta("ns", strings.Repeat("x", 1000))},
			eventtype: "Normal", reason: "Started", action: "Starting", note: "it runs",
		},
		"about nothing in particular": {
			regarding: &corev1.ObjectReference{},
			eventtype: "Normal", reason: "Started", action: "Starting", note: "it runs",
		},
	}
}

// An Event says the same whichever recorder made it. Different on purpose:
//
//   - Its name ends in the hash of its key and not in the time, so that a process
//     that is started again finds it. It begins with the name of the object in
//     both.
//   - What is in no namespace is reported in kube-system, as the design has it, and
//     not in default. Options.ClusterNamespace puts it where client-go does.
//   - References have no resourceVersion: an object that changes would make an Event
//     of each occurrence.
func TestEventsSayTheSame(t *testing.T) {
	for name, e := range emissions(t) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				theirs := startProgram(t, "client-go")
				e.emit(theirs.recorder)
				synctest.Wait()
				ours := startProgram(t, "eventseries")
				e.emit(ours.recorder)
				synctest.Wait()

				want, got := theirs.only(t), ours.only(t)
				assert.Empty(t, apivalidation.NameIsDNSSubdomain(got.Name, false), got.Name)
				assert.NotEqual(t, want.Name, got.Name)
				got.Name = want.Name
				if want.Regarding.Namespace == "" {
					assert.Equal(t, metav1.NamespaceDefault, want.Namespace)
					assert.Equal(t, metav1.NamespaceSystem, got.Namespace)
					got.Namespace = want.Namespace
				}
				want.Regarding.ResourceVersion = ""
				if want.Related != nil {
					want.Related.ResourceVersion = ""
				}
				assert.True(t, want.EventTime.Equal(&got.EventTime), "in this bubble no time has passed")
				got.EventTime = want.EventTime
				assert.Equal(t, want, got)
			})
		})
	}
}

func TestNamesBeginWithThatOfTheObject(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		p.emit(pod("web-0"), "Testing")
		assert.Regexp(t, `^web-0\.[0-9a-f]+$`, p.only(t).Name)
	})
}

// Different on purpose: client-go's names are made of the time, so of two events
// about one object at the same moment it loses one.
func TestNamesOfTheSameMoment(t *testing.T) {
	withOurs(t, func(t *testing.T, p *program) {
		p.emit(pod("a"), "Testing")
		p.emit(pod("a"), "Stopping")
		assert.Len(t, p.stored(t), 2)
	})
}

// Where it is wanted, cluster-scoped objects have their Events where client-go's
// recorder writes them.
func TestClusterNamespaceOfClientGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset()
		broadcaster := eventseries.NewBroadcasterWithOptions(&eventseries.EventSinkImpl{Interface: clients.EventsV1()},
			eventseries.Options{ClusterNamespace: metav1.NamespaceDefault})
		defer broadcaster.Shutdown()
		require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
		broadcaster.NewRecorder(scheme.Scheme, controller).Eventf(node, nil, "Normal", "Started", "Starting", "it runs")
		require.NoError(t, broadcaster.Flush(t.Context()))
		list, err := clients.EventsV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Len(t, list.Items, 1)
	})
}

// What is no event is not recorded, and nobody panics.
func TestNoEvents(t *testing.T) {
	type unknown struct{ corev1.Pod }
	about := pod("a")
	for name, e := range map[string]emission{
		"nothing":            {regarding: nil, eventtype: "Normal"},
		"an unknown kind":    {regarding: &unknown{}, eventtype: "Normal"},
		"no type":            {regarding: about, eventtype: ""},
		"a type of its own":  {regarding: about, eventtype: "Error"},
		"a type misspelled":  {regarding: about, eventtype: "normal"},
		"a type with spaces": {regarding: about, eventtype: "Normal "},
	} {
		t.Run(name, func(t *testing.T) {
			e.reason, e.action, e.note = "Tested", "Testing", "note"
			withBoth(t, func(t *testing.T, p *program) {
				e.emit(p.recorder)
				synctest.Wait()
				assert.Empty(t, p.sink.all())
				p.emit(about, "Testing") // it goes on
				assert.Len(t, p.sink.all(), 1)
			})
		})
	}
}

// A nil in a type: client-go's recorder panics, this one drops it.
func TestNilReference(t *testing.T) {
	withOurs(t, func(t *testing.T, p *program) {
		p.emit(nil, "Testing")
		assert.Empty(t, p.sink.all())
		assert.Equal(t, map[eventseries.DropReason]uint64{eventseries.DropInvalidObject: 1},
			p.broadcaster.(*eventseries.Broadcaster).Stats().Dropped)
	})
}

// A related object that cannot be referred to is left out.
func TestRelatedThatIsUnknown(t *testing.T) {
	type unknown struct{ corev1.Pod }
	withBoth(t, func(t *testing.T, p *program) {
		p.recorder.Eventf(pod("a"), &unknown{}, "Normal", "Tested", "Testing", "note")
		synctest.Wait()
		assert.Nil(t, p.only(t).Related)
	})
}

// Both name the process by the controller and the host.
func TestReportingInstance(t *testing.T) {
	instances := make(map[string]bool)
	withBoth(t, func(t *testing.T, p *program) {
		p.emit(pod("a"), "Testing")
		event := p.only(t)
		assert.Equal(t, controller, event.ReportingController)
		assert.True(t, strings.HasPrefix(event.ReportingInstance, controller+"-"), event.ReportingInstance)
		instances[event.ReportingInstance] = true
	})
	assert.Len(t, instances, 1)
}

// Events of before the start: client-go's recorder loses them, this one writes
// them.
func TestEmittedBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, "eventseries")
		p.emit(pod("a"), "Testing")
		time.Sleep(time.Minute)
		assert.Empty(t, p.sink.all())
		require.NoError(t, p.broadcaster.StartRecordingToSinkWithContext(t.Context()))
		synctest.Wait()
		assert.Equal(t, time.Minute, time.Since(p.only(t).EventTime.Time), "it happened then")
	})
}

// Each recorder of a broadcaster writes in the name of its controller.
func TestRecordersOfOneBroadcaster(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		p.emit(pod("a"), "Testing")
		time.Sleep(time.Second)
		p.recorder = p.broadcaster.NewRecorder(scheme.Scheme, "example.com/other")
		p.emit(pod("a"), "Testing")
		controllers := make(map[string]*eventsv1.EventSeries)
		for _, event := range p.stored(t) {
			controllers[event.ReportingController] = event.Series
		}
		assert.Equal(t, map[string]*eventsv1.EventSeries{controller: nil, "example.com/other": nil}, controllers)
	})
}
