package eventstest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/eventtext"
	"github.com/eventseries/eventseries/internal/legacyrecorder"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// DefaultReportingController is the reporting controller of a [Recorder] without
// [Options.ReportingController].
const DefaultReportingController = "eventstest"

// Options configure a [Recorder]. The zero value has the defaults.
type Options struct {
	// Scheme knows the kinds of objects without a TypeMeta, like the scheme that a
	// broadcaster's NewRecorder gets. Client-go's scheme, which has the built-in types of
	// Kubernetes, is the second choice. Custom resources need a scheme that has their types.
	Scheme *runtime.Scheme

	// ReportingController is the name of the controller. If empty, it is
	// [DefaultReportingController].
	ReportingController string

	// ReportingInstance is the name of the process. If empty, it is the name of the
	// controller.
	ReportingInstance string

	// Clock provides the times of events. If nil, it is the real clock.
	Clock clock.PassiveClock

	// Style makes problems of [ClassStyle] fail the test, too; see [Lint].
	Style bool
}

// Recorder keeps the events that a program under test emits. It implements the recorder
// interfaces of package events, and with them those of client-go's tools/events and of
// controller-runtime; [Recorder.Legacy] implements those of tools/record.
//
// Create one with [NewRecorder], pass it to the program under test, and call
// [Recorder.Expect] or a similar method.
//
// All methods are safe for concurrent use. The zero value is a recorder with default
// options that fails no test by itself; call [Recorder.Check].
type Recorder struct {
	opts Options
	tb   testing.TB // nil if there is no test

	// alive guards ended. Its read lock keeps the test from ending during a report:
	// package testing panics if a test fails after its end.
	alive sync.RWMutex
	ended bool

	mu      sync.Mutex
	events  []Event
	changed chan struct{} // closed by the next event; nil if nobody waits
}

var _ events.Recorder = (*Recorder)(nil)

// NewRecorder returns a recorder with default options. An event that production would
// lose or change, which has a problem of [ClassRules] or [ClassRecorder], fails the test
// at once.
func NewRecorder(tb testing.TB) *Recorder {
	return NewRecorderWithOptions(tb, Options{})
}

// NewRecorderWithOptions is like [NewRecorder], with options. If tb is nil, events do not
// fail any test; call [Recorder.Check].
func NewRecorderWithOptions(tb testing.TB, opts Options) *Recorder {
	r := &Recorder{opts: opts, tb: tb}
	if tb != nil {
		tb.Cleanup(func() {
			r.alive.Lock()
			defer r.alive.Unlock()
			r.ended = true
		})
	}
	return r
}

// Eventf records an event. It neither blocks nor panics, even if an argument is invalid.
func (r *Recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if r.tb != nil {
		r.tb.Helper()
	}
	r.self().Eventf(regarding, related, eventtype, reason, action, note, args...)
}

// AnnotatedEventf records an event with annotations. It copies the map.
func (r *Recorder) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any) {
	if r.tb != nil {
		r.tb.Helper()
	}
	r.self().AnnotatedEventf(regarding, related, annotations, eventtype, reason, action, note, args...)
}

// WithLogger returns a recorder that keeps its events in r. It does not log.
func (r *Recorder) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	return r.self().WithLogger(logger)
}

// Named returns a recorder for another controller that keeps its events in r, for programs
// with several controllers.
func (r *Recorder) Named(reportingController string) events.Recorder {
	return &emitter{to: r, controller: reportingController}
}

// Legacy returns a recorder for call sites of client-go's tools/record that keeps its
// events in r. The action of its events is their reason, as in production.
func (r *Recorder) Legacy() record.EventRecorderLogger {
	self := r.self()
	self.legacy = true
	return legacyrecorder.New(self, nil)
}

// Events returns copies of the events so far, in the order of the calls.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copiesLocked()
}

func (r *Recorder) copiesLocked() []Event {
	list := slices.Clone(r.events)
	for i := range list {
		list[i].Annotations, list[i].Problems = maps.Clone(list[i].Annotations), slices.Clone(list[i].Problems)
	}
	return list
}

// Reset removes all events.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}

// Check fails the test for each problem of the given classes, or of any class if none is
// given. It returns whether there are no such problems.
func (r *Recorder) Check(tb testing.TB, classes ...Class) bool {
	tb.Helper()
	ok := true
	for i, event := range r.Events() {
		for _, problem := range event.Problems {
			if len(classes) == 0 || slices.Contains(classes, problem.Class) {
				ok = false
				tb.Errorf("eventstest: event #%d, %v: %v", i+1, event, problem)
			}
		}
	}
	return ok
}

func (r *Recorder) self() *emitter {
	return &emitter{to: r, controller: cmp.Or(r.opts.ReportingController, DefaultReportingController)}
}

func (r *Recorder) scheme() *runtime.Scheme {
	return cmp.Or(r.opts.Scheme, scheme.Scheme)
}

// keep records an event, and wakes the callers of Wait.
func (r *Recorder) keep(event Event) {
	clk := cmp.Or[clock.PassiveClock](r.opts.Clock, clock.RealClock{})
	r.mu.Lock()
	defer r.mu.Unlock()
	event.Time = clk.Now() // under the lock, so that times are in order
	r.events = append(r.events, event)
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// report fails the test for the problems of an event.
func (r *Recorder) report(event Event) {
	if r.tb == nil {
		return
	}
	r.tb.Helper()
	for _, problem := range event.Problems {
		if problem.Class == ClassStyle && !r.opts.Style {
			continue
		}
		r.alive.RLock()
		if !r.ended {
			r.tb.Errorf("eventstest: event %v: %v", event, problem)
		}
		r.alive.RUnlock()
	}
}

// emitter is the recorder of one controller.
type emitter struct {
	to         *Recorder
	controller string
	legacy     bool // callers pass no action
}

var _ events.Recorder = (*emitter)(nil)

// WithLogger implements [events.EventRecorderLogger]. It does not log.
func (e *emitter) WithLogger(klog.Logger) events.EventRecorderLogger { return e }

// Eventf implements [events.EventRecorder].
func (e *emitter) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if e.to.tb != nil {
		e.to.tb.Helper()
	}
	e.emit(regarding, related, nil, eventtype, reason, action, note, args)
}

// AnnotatedEventf implements [events.AnnotatedEventRecorder].
func (e *emitter) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any) {
	if e.to.tb != nil {
		e.to.tb.Helper()
	}
	e.emit(regarding, related, annotations, eventtype, reason, action, note, args)
}

func (e *emitter) emit(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args []any) {
	if e.to.tb != nil {
		e.to.tb.Helper()
	}
	event := Event{
		Type:                eventtype,
		Reason:              reason,
		Action:              action,
		Note:                eventtext.Format(note, args),
		Annotations:         maps.Clone(annotations),
		ReportingController: e.controller,
	}
	var regardingErr, relatedErr error
	event.Regarding, regardingErr = refer(e.to.scheme(), regarding)
	if related != nil {
		event.Related, relatedErr = refer(e.to.scheme(), related)
	}

	if regardingErr != nil {
		event.Problems = append(event.Problems, Problem{Class: ClassRules, Field: "regarding", Detail: regardingErr.Error(), Lost: true})
	}
	if relatedErr != nil {
		event.Problems = append(event.Problems, Problem{Class: ClassRecorder, Field: "related", Detail: relatedErr.Error() + "; the recorder omits it"})
	}
	event.Problems = append(event.Problems, e.problems(event)...)
	if misformatted(event.Note, note, args) {
		event.Problems = append(event.Problems, Problem{Class: ClassRecorder, Field: "note", Value: event.Note,
			Detail: fmt.Sprintf("the format %q does not match its %d arguments", note, len(args))})
	}
	e.to.keep(event)
	e.to.report(event)
}

// problems returns the problems of an event, except those of its objects.
func (e *emitter) problems(event Event) (problems []Problem) {
	event.Time = time.Unix(0, 0) // keep sets the real one
	object := event.object(cmp.Or(e.to.opts.ReportingInstance, e.controller, DefaultReportingController))
	for _, problem := range Validate(object) {
		switch problem.Field {
		case "type", "namespace", "metadata.namespace":
			problem.Lost = true // recorders cannot guess the right value
		}
		problems = append(problems, problem)
	}
	problems = append(problems, omissions(event)...)
	return append(problems, lint(object, e.legacy)...)
}

// omissions returns problems for what recorders of package events omit or replace,
// although the server would accept it.
func omissions(event Event) (problems []Problem) {
	const invalidUTF8 = "is invalid UTF-8, which is replaced"
	add := func(field, value, detail string) {
		problems = append(problems, Problem{Class: ClassRecorder, Field: field, Value: value, Detail: detail})
	}
	for _, f := range []struct{ name, value string }{{"reason", event.Reason}, {"action", event.Action}, {"note", event.Note}} {
		if !utf8.ValidString(f.value) {
			add(f.name, f.value, invalidUTF8)
		}
	}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(event.Annotations)) {
		value := event.Annotations[key]
		size += len(key) + len(value)
		path := "metadata.annotations[" + key + "]"
		if strings.HasPrefix(key, series.AnnotationPrefix) {
			add(path, value, "is omitted, because "+series.AnnotationPrefix+" is reserved for the recorder")
		}
		if !utf8.ValidString(value) {
			add(path, value, invalidUTF8)
		}
	}
	if size > tracker.MaxAnnotationBytes {
		add("metadata.annotations", "", fmt.Sprintf("has %d bytes; the recorder omits annotations beyond %d bytes", size, tracker.MaxAnnotationBytes))
	}
	return problems
}
