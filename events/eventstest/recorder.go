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
	"github.com/eventseries/eventseries/internal/legacy"
	"github.com/eventseries/eventseries/internal/text"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// DefaultReportingController is the name of a recorder that was given none.
const DefaultReportingController = "eventstest"

// Options of a Recorder. The zero value is the default.
type Options struct {
	// Scheme is asked for the kinds of objects that do not say it themselves, as
	// the scheme of a broadcaster's NewRecorder is. If nil, that of client-go, which
	// knows the objects of Kubernetes. Objects of a CRD need one that has them.
	Scheme *runtime.Scheme

	// ReportingController is what the controller calls itself. If empty,
	// DefaultReportingController.
	ReportingController string

	// ReportingInstance is what the process calls itself. If empty,
	// ReportingController.
	ReportingInstance string

	// Clock is where the times of events come from. If nil, the real clock.
	Clock clock.PassiveClock

	// Style says that an event which does not keep to the style guide fails the
	// test as well; see Lint.
	Style bool
}

// Recorder keeps the events that are emitted to it. It is a recorder of package
// events (and so one of client-go's and of controller-runtime's), and takes the
// place of client-go's FakeRecorder: it keeps what was emitted and not a string of
// it, and never blocks.
//
// All methods may be called concurrently. The zero value is a recorder with
// default options that fails no test by itself; Check says what is wrong with its
// events.
type Recorder struct {
	opts Options
	tb   testing.TB // nil: no test

	// alive is read-locked while something is reported to the test, which must not
	// end meanwhile: testing panics when something is reported to a test that has
	// ended.
	alive sync.RWMutex
	ended bool

	mu      sync.Mutex
	events  []Event
	changed chan struct{} // closed when there is one more; nil if nobody waits
}

var _ events.Recorder = (*Recorder)(nil)

// NewRecorder returns a recorder with default options. An event that production
// would lose, or record otherwise than it was emitted, fails the test at once: one
// that has a problem of ClassRules or ClassRecorder.
func NewRecorder(tb testing.TB) *Recorder {
	return NewRecorderWithOptions(tb, Options{})
}

// NewRecorderWithOptions is NewRecorder with options. If tb is nil, no event fails
// anything, and Check says what is wrong.
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

// Eventf keeps an event. It does not block, and does not panic whatever it is
// given.
func (r *Recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if r.tb != nil {
		r.tb.Helper()
	}
	r.self().Eventf(regarding, related, eventtype, reason, action, note, args...)
}

// AnnotatedEventf keeps an event with annotations. The map is copied.
func (r *Recorder) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any) {
	if r.tb != nil {
		r.tb.Helper()
	}
	r.self().AnnotatedEventf(regarding, related, annotations, eventtype, reason, action, note, args...)
}

// WithLogger returns a recorder that keeps its events here. Nothing is logged.
func (r *Recorder) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	return r.self().WithLogger(logger)
}

// Named returns a recorder of another controller that keeps its events here, for
// programs that have several.
func (r *Recorder) Named(reportingController string) events.Recorder {
	return &emitter{to: r, controller: reportingController}
}

// Legacy returns a recorder for call sites of client-go's tools/record that keeps
// its events here. Their reason is their action, as in production.
func (r *Recorder) Legacy() record.EventRecorderLogger {
	self := r.self()
	self.legacy = true
	return legacy.NewRecorder(self, nil)
}

// Events returns what was emitted so far, in that order.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Reset forgets all events.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}

// Check fails the test for each event that has a problem of one of the classes,
// or of any if none is given, and reports whether there was none.
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
	if r.opts.Scheme != nil {
		return r.opts.Scheme
	}
	return scheme.Scheme
}

// keep takes an event in, and wakes who waits for one.
func (r *Recorder) keep(event Event) {
	clk := r.opts.Clock
	if clk == nil {
		clk = clock.RealClock{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	event.Time = clk.Now() // here, so that the times of events are in their order
	r.events = append(r.events, event)
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// report fails the test for what is wrong with event, if that is to be said at
// once.
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

// emitter makes the events of one controller.
type emitter struct {
	to         *Recorder
	controller string
	legacy     bool // its callers know no action
}

var _ events.Recorder = (*emitter)(nil)

// WithLogger implements events.EventRecorderLogger. Nothing is logged.
func (e *emitter) WithLogger(klog.Logger) events.EventRecorderLogger { return e }

// Eventf implements events.EventRecorder.
func (e *emitter) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if e.to.tb != nil {
		e.to.tb.Helper()
	}
	e.emit(regarding, related, nil, eventtype, reason, action, note, args)
}

// AnnotatedEventf implements events.AnnotatedEventRecorder.
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
		Note:                text.Format(note, args),
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
		event.Problems = append(event.Problems, Problem{Class: ClassRecorder, Field: "related", Detail: relatedErr.Error() + "; the event is recorded without it"})
	}
	event.Problems = append(event.Problems, e.problems(event)...)
	if misformatted(event.Note, note, args) {
		event.Problems = append(event.Problems, Problem{Class: ClassRecorder, Field: "note", Value: event.Note,
			Detail: fmt.Sprintf("the format %q does not go with its %d arguments", note, len(args))})
	}
	e.to.keep(event)
	e.to.report(event)
}

// problems returns what is wrong with an event whose objects are known.
func (e *emitter) problems(event Event) (problems []Problem) {
	event.Time = time.Unix(0, 0) // it has one as soon as it is kept
	object := event.object(cmp.Or(e.to.opts.ReportingInstance, e.controller, DefaultReportingController))
	for _, problem := range Validate(object) {
		switch problem.Field {
		case "type", "namespace", "metadata.namespace":
			problem.Lost = true // nobody can know what was meant
		}
		problems = append(problems, problem)
	}
	problems = append(problems, omissions(event)...)
	return append(problems, lint(object, e.legacy)...)
}

// omissions returns what the recorder of package events would leave out or
// replace, although the server would take it.
func omissions(event Event) (problems []Problem) {
	add := func(field, value, detail string) {
		problems = append(problems, Problem{Class: ClassRecorder, Field: field, Value: value, Detail: detail})
	}
	for _, f := range []struct{ name, value string }{{"reason", event.Reason}, {"action", event.Action}, {"note", event.Note}} {
		if !utf8.ValidString(f.value) {
			add(f.name, f.value, "is not UTF-8; what is not is replaced")
		}
	}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(event.Annotations)) {
		value := event.Annotations[key]
		size += len(key) + len(value)
		path := "metadata.annotations[" + key + "]"
		if strings.HasPrefix(key, series.AnnotationPrefix) {
			add(path, value, "is left out: "+series.AnnotationPrefix+" is the recorder's")
		}
		if !utf8.ValidString(value) {
			add(path, value, "is not UTF-8; what is not is replaced")
		}
	}
	if size > tracker.MaxAnnotationBytes {
		add("metadata.annotations", "", fmt.Sprintf("have %d bytes; what does not fit into %d is left out", size, tracker.MaxAnnotationBytes))
	}
	return problems
}
