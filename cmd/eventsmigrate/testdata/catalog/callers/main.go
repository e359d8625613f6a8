// Command callers emits events whose reasons come through indirect calls. Each of them is
// in the catalogue. Other code can call a method that is a value.
package main

import (
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/testdata/catalog/callers/testing/helper"
)

var pod = &corev1.Pod{}

var shared record.EventRecorder

// A variable without a name runs, too.
var _ = register("WantUnnamed")

func register(reason string) bool {
	shared.Event(pod, "Normal", reason, "note")
	return true
}

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}
	r := mgr.GetEventRecorderFor("callers")
	interfaces(r)
	generics(r)
	variables(r)
	decorated(r)
	collections(r, os.Getenv("KEY"))
	forms(r)
	helper.Emit(r, pod)
}

// base implements a method of worker, and controller the other one.
type base struct{ r record.EventRecorder }

func (b *base) warn(reason string) { b.r.Event(pod, "Warning", reason, "note") }

type controller struct{ *base }

func (c *controller) sync() {}

type worker interface {
	warn(reason string)
	sync()
}

type notifier[T any] interface{ notify(object T, reason string) }

type podNotifier struct{ r record.EventRecorder }

func (n podNotifier) notify(object *corev1.Pod, reason string) {
	n.r.Event(object, "Normal", reason, "note")
}

func interfaces(r record.EventRecorder) {
	c := &controller{&base{r}}
	c.warn("WantDirect")
	var w worker = c
	w.warn("WantThroughEmbedding")
	p := podNotifier{r}
	p.notify(pod, "WantNotifier")
	var n notifier[*corev1.Pod] = p
	n.notify(pod, "WantGenericInterface")
}

type store[T client.Object] struct{ r record.EventRecorder }

func (s *store[T]) emit(object T, reason string) { s.r.Event(object, "Normal", reason, "note") }

func emitTo[T client.Object](r record.EventRecorder, object T, reason string) {
	r.Event(object, "Normal", reason, "note")
}

func ofWorker[W worker](w W) { w.warn("WantConstraint") }

func generics(r record.EventRecorder) {
	s := &store[*corev1.Node]{r}
	s.emit(&corev1.Node{}, "WantStore")
	emitTo(r, pod, "WantInferred")
	emitTo[*corev1.Service](r, &corev1.Service{}, "WantInstantiated")
	ofWorker(&controller{&base{r}})
}

func apply(emit func(string)) { emit("WantOfAParameter") }

func variables(r record.EventRecorder) {
	emit := func(reason string) { r.Event(pod, "Normal", reason, "of a variable") }
	emit("WantCalled")
	other := emit
	other("WantOfACopy")
	passed := func(reason string) { r.Event(pod, "Normal", reason, "of an argument") }
	passed("WantCalledToo")
	apply(passed)
}

// decorator has events of its own besides those that it passes on.
type decorator struct{ record.EventRecorder }

func (d *decorator) Event(object runtime.Object, eventtype, reason, message string) {
	if message == "" {
		d.EventRecorder.Event(object, corev1.EventTypeWarning, "WantOwn", "no message")
	}
	go func() { d.EventRecorder.Event(object, eventtype, reason, message) }()
}

func decorated(r record.EventRecorder) {
	var d record.EventRecorder = &decorator{r}
	d.Event(pod, "Normal", "WantDecorated", "note")
}

var byKey = map[string]string{"a": "WantLiteral"}

func init() { byKey["b"] = "WantAssigned" }

func collections(r record.EventRecorder, key string) {
	r.Event(pod, "Normal", byKey[key], "of a map")
	list := []string{"WantElement", ""}
	list[1] = "WantSet"
	for _, reason := range list {
		r.Event(pod, "Normal", reason, "of a list")
	}
}

func forms(r record.EventRecorder) {
	record.EventRecorder.Event(r, pod, "Normal", "WantOfAMethodExpression", "note")
	defer r.Event(pod, "Normal", "WantDeferred", "note")
	fmt.Sprint(r.Event)
	reason := ""
	switch err := errors.Unwrap(nil); {
	case err != nil:
		reason = "WantCase"
	default:
		reason = "WantDefault"
	}
	r.
		Event(pod, "Normal", reason, "note")
}
