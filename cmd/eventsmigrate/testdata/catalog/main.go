// Command catalog emits events in all ways that the catalogue follows.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/eventseries/eventseries/events"

	"example.com/testdata/catalog/backups"
	"example.com/testdata/catalog/fake"
)

const reasonStarted = "Started"

func main() {
	testing.Init() // a program can import package testing
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}
	var pod corev1.Pod
	var node corev1.Node
	recorders(mgr, &pod, &node)
	values(mgr.GetEventRecorderFor("values"), &pod, err)
	references(mgr.GetEventRecorder("references"))
	wrappers(mgr.GetEventRecorderFor("wrappers"), &pod, &node)
	backups.Run(context.Background(), mgr.GetEventRecorder("backups"))
	fake.Emit(&pod)
}

// Each kind of recorder.
func recorders(mgr ctrl.Manager, pod *corev1.Pod, node *corev1.Node) {
	mgr.GetEventRecorder("structured").Eventf(pod, node, corev1.EventTypeNormal, reasonStarted, "Start", "on %s", node.Name)
	mgr.GetEventRecorderFor("legacy").Eventf(pod, "Normal", "Legacy", "on %s", node.Name)
	var client clientevents.EventRecorder = clientevents.NewFakeRecorder(1)
	client.Eventf(pod, nil, "Normal", "Client", "Start", "100%%")
	var ours events.EventRecorder
	ours.Eventf(pod, nil, "Normal", "Ours", "Start", "note | with a `pipe`")
	var annotated events.AnnotatedEventRecorder
	annotated.AnnotatedEventf(pod, nil, map[string]string{"a": "b"}, "Normal", "Annotated", "Start", "note")
	clientevents.NewFakeRecorder(1).Eventf(pod, nil, "Normal", "OfAFake", "Start", "note")
}

type state struct {
	reason string
	phase  string `json:"phase"`
}

// decoded has tags, so only its literals tell what is in it.
type decoded struct {
	A string `json:"a"`
	B string `json:"b"`
}

func identity(reason string) string { return reason }

var reasons = map[bool]string{true: "MapTrue", false: "MapFalse"}

func resultOf(failed bool) (string, error) {
	if failed {
		return "ResultFailed", errors.New("failed")
	}
	return "ResultFine", nil
}

// Constants and variables.
func values(r record.EventRecorder, pod *corev1.Pod, err error) {
	eventtype, reason := corev1.EventTypeNormal, "LocalFine"
	if err != nil {
		eventtype, reason = corev1.EventTypeWarning, "LocalFailed"
	}
	r.Event(pod, eventtype, reason, "100% of "+pod.Name)
	r.Event(pod, "Normal", "Sprintf", fmt.Sprintf("mount %s: %v", pod.Name, err))
	r.Event(pod, "Warning", "ErrorText", err.Error())
	r.Eventf(pod, "Warning", "Wrapped", "%s", "100% of "+pod.Name)
	r.Event(pod, "Normal", reasons[err == nil], "note")
	result, _ := resultOf(err != nil)
	r.Event(pod, "Normal", result, "note")
	s := state{reason: "FieldFine"}
	s.reason = "FieldFailed"
	r.Event(pod, "Normal", s.reason, "note")
	r.Event(pod, "Normal", s.phase, "note")
	r.Event(pod, "Warning", err.Error(), "note")
	r.Event(pod, "Normal", "Created-"+pod.Name, "note")
	for _, element := range []string{"First", "Second"} {
		r.Event(pod, "Normal", fmt.Sprintf("Element%s", element), "note")
	}
	r.Event(pod, "Normal", pod.Status.Reason, "note")
	r.Event(pod, os.Getenv("TYPE"), reasonStarted, "note")
	called := identity("CallFirst")
	if err != nil {
		called = identity("CallSecond")
	}
	r.Event(pod, "Normal", called, "note")
	d := decoded{A: "DecodedFirst", B: "DecodedSecond"}
	either := d.A
	if err != nil {
		either = d.B
	}
	r.Event(pod, "Normal", either, "note")
	emit := r.Event
	emit(pod, "Normal", "OfAValue", "note")
}

// Objects without a type of their own.
func references(r clientevents.EventRecorder) {
	r.Eventf(&corev1.ObjectReference{Kind: "Machine", Name: "a"}, nil, "Normal", "Reference", "Refer", "note")
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "Widget"}}
	r.Eventf(object, &unstructured.Unstructured{}, "Normal", "Unstructured", "Refer", "note")
	ref, err := reference.GetReference(scheme.Scheme, &corev1.Service{})
	if err != nil {
		return
	}
	r.Eventf(ref, nil, "Normal", "GetReference", "Refer", "note")
}

type emitter interface {
	emit(object runtime.Object, reason string)
}

type controller struct{ recorder record.EventRecorder }

func (c *controller) emit(object runtime.Object, reason string) {
	c.recorder.Event(object, "Normal", reason, "through an interface")
}

// warn is a wrapper of a wrapper: each of its callers is an event of its own.
func (c *controller) warn(object runtime.Object, reason, format string, args ...any) {
	c.log(object, corev1.EventTypeWarning, reason, format, args...)
}

func (c *controller) log(object runtime.Object, eventtype, reason, format string, args ...any) {
	c.recorder.Eventf(object, eventtype, reason, format, args...)
}

// Exported has callers that the program does not contain.
func (c *controller) Exported(object runtime.Object, reason string) {
	c.recorder.Event(object, "Normal", reason, "exported")
}

func wrappers(r record.EventRecorder, pod *corev1.Pod, node *corev1.Node) {
	c := &controller{recorder: &forwarding{r}}
	c.warn(pod, "WarnPod", "pod %s", pod.Name)
	c.warn(node, "WarnNode", "node %s", node.Name)
	c.log(node, corev1.EventTypeNormal, "LogNode", "note")
	var e emitter = c
	e.emit(pod, "EmitPod")
	e.emit(node, "EmitNode")
	literal := func(reason string) { r.Event(node, "Normal", reason, "of a literal") }
	literal("LiteralFirst")
	literal("LiteralSecond")
}

// forwarding passes on events, and emits none of its own.
type forwarding struct{ record.EventRecorder }

func (f *forwarding) Event(object runtime.Object, eventtype, reason, message string) {
	f.EventRecorder.Event(object, eventtype, reason, message)
}
