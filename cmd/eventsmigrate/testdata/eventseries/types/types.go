// Package types contains legacy types in all places.
package types

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"example.com/testdata/eventseries/types/other"
)

// Recorder is an alias.
type Recorder = record.EventRecorder

// Defined is a type of its own.
type Defined record.EventRecorder

// Wrapper embeds a recorder.
type Wrapper struct {
	record.EventRecorder
	name string
}

// Prefixed forwards to another recorder.
type Prefixed struct{ inner record.EventRecorder }

// Event forwards.
func (p *Prefixed) Event(object runtime.Object, eventtype, reason, message string) {
	p.inner.Event(object, eventtype, reason, "prefix: "+message)
}

// Eventf forwards.
func (p *Prefixed) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	p.inner.Eventf(object, eventtype, reason, "prefix: "+messageFmt, args...)
}

// AnnotatedEventf forwards.
func (p *Prefixed) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	p.inner.AnnotatedEventf(object, annotations, eventtype, reason, messageFmt, args...)
}

// Sink is an interface that recorders satisfy.
type Sink interface {
	// Event emits an event.
	Event(object runtime.Object, eventtype, reason, message string)
	Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any)
}

// Box is generic.
type Box[T any] struct{ Value T }

// Get returns the value.
func (b Box[T]) Get() T { return b.Value }

func identity[R record.EventRecorder](r R) R { return r }

func all(r record.EventRecorder, logger record.EventRecorderLogger, object runtime.Object) Sink {
	box := Box[record.EventRecorder]{Value: r}
	box.Get().Event(object, "Normal", "Created", "a")
	identity(r).Event(object, "Normal", "Created", "a")
	w := Wrapper{EventRecorder: &Prefixed{inner: r}}
	w.Event(object, "Normal", "Created", "a")
	w.AnnotatedEventf(object, map[string]string{"a": "b"}, "Normal", "Created", "a")
	logger.WithLogger(klog.Background()).Event(object, "Normal", "Created", "a")
	list := []Recorder{r, w, logger}
	byName := map[string]record.EventRecorder{}
	byName["a"] = list[0]
	for _, r := range byName {
		r.Event(object, "Normal", "Created", "a")
	}
	var d Defined = r
	d.Event(object, "Normal", "Created", "a")
	f := func(r record.EventRecorder) { r.Event(object, "Normal", "Created", "a") }
	f(r)
	other.Emit(r, object)
	(&other.Holder{Recorder: r}).Recorder.Event(object, "Normal", "Created", "a")
	var s Sink = r
	s.Event(object, "Normal", "Created", "a")
	return s
}
