package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
)

// subject is what an Event is about. The demo expects one Event for each. The objects are
// kind/name, and related is empty if there is none.
type subject struct{ regarding, reason, related string }

func newSubject(regarding *corev1.ObjectReference, reason string, related *corev1.ObjectReference) subject {
	s := subject{regarding: regarding.Kind + "/" + regarding.Name, reason: reason}
	if related != nil {
		s.related = related.Kind + "/" + related.Name
	}
	return s
}

func (s subject) String() string {
	if s.related == "" {
		return s.regarding + " " + s.reason
	}
	return s.regarding + " " + s.reason + " (" + s.related + ")"
}

// history is what happened to the Event of a subject.
type history struct {
	subject subject
	emitted int            // by the controllers
	count   int            // on the server
	states  []series.State // after each write
	event   *eventsv1.Event
	faults  []string
}

// settled reports whether the Event is in its final state.
func (h *history) settled() bool {
	final := series.Finished
	if h.emitted == 1 {
		final = series.Singleton
	}
	return len(h.states) > 0 && h.states[len(h.states)-1] == final
}

// heartbeats returns the number of writes of the ongoing series after the first one.
func (h *history) heartbeats() int {
	n := 0
	for i, state := range h.states {
		if i > 0 && state == series.Ongoing && h.states[i-1] == state {
			n++
		}
	}
	return n
}

// problems returns what is wrong in the end.
func (h *history) problems() []string {
	problems := slices.Clone(h.faults)
	want := []series.State{series.Singleton}
	if h.emitted > 1 {
		want = append(want, slices.Repeat([]series.State{series.Ongoing}, 1+max(h.heartbeats(), 1))...)
		want = append(want, series.Finished)
	}
	if !slices.Equal(h.states, want) {
		problems = append(problems, fmt.Sprintf("the writes are %v, want %v", h.states, want))
	}
	if h.count != h.emitted {
		problems = append(problems, fmt.Sprintf("emitted %s, but the count on the server is %s", plural(h.emitted, "time"), thousands(h.count)))
	}
	return problems
}

// String returns the states in one line.
func (h *history) String() string {
	var stages []string
	for _, state := range slices.Compact(slices.Clone(h.states)) {
		stages = append(stages, state.String())
		if state == series.Ongoing {
			stages = append(stages, plural(h.heartbeats(), "heartbeat"))
		}
	}
	return strings.Join(stages, " → ")
}

// ledger has the histories of all Events. It is safe for concurrent use. The zero value is
// ready to use.
type ledger struct {
	mu        sync.Mutex
	histories []*history
}

// of returns the history of a subject. The caller holds mu.
func (l *ledger) of(s subject) *history {
	i := slices.IndexFunc(l.histories, func(h *history) bool { return h.subject == s })
	if i < 0 {
		i = len(l.histories)
		l.histories = append(l.histories, &history{subject: s})
	}
	return l.histories[i]
}

// emit counts an occurrence.
func (l *ledger) emit(s subject) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(s).emitted++
}

// store records what the server has stored, and returns the name of the change. The name is
// empty if the Event has not changed.
func (l *ledger) store(event *eventsv1.Event) (s subject, now *series.Series, change string) {
	s = newSubject(&event.Regarding, event.Reason, event.Related)
	now, err := series.FromEvent(event)
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.of(s)
	switch before := h.event; {
	case err != nil:
		h.faults = append(h.faults, err.Error())
		return s, &series.Series{}, "WRONG"
	case before == nil:
		change = "created"
	case before.Name != event.Name:
		h.faults = append(h.faults, "another Event: "+event.Name)
		return s, now, "WRONG"
	case before.ResourceVersion == event.ResourceVersion:
		return s, now, ""
	case now.State != series.Ongoing:
		change = strings.ToLower(now.State.String())
	case h.states[len(h.states)-1] == series.Ongoing:
		change = "heartbeat"
	default:
		change = "series"
	}
	h.event, h.count = event, int(now.Count)
	h.states = append(h.states, now.State)
	return s, now, change
}

// settled reports whether all Events are in their final states.
func (l *ledger) settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !slices.ContainsFunc(l.histories, func(h *history) bool { return !h.settled() })
}

// emitted returns the number of occurrences of all Events.
func (l *ledger) emitted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, h := range l.histories {
		n += h.emitted
	}
	return n
}

// countingRecorder counts what it records.
type countingRecorder struct {
	events.EventRecorder
	ledger *ledger
}

func (r *countingRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, eventtype, reason, action, note, args...)
	regardingRef, _ := reference.GetReference(scheme.Scheme, regarding) // the objects of the demo have one
	var relatedRef *corev1.ObjectReference
	if related != nil {
		relatedRef, _ = reference.GetReference(scheme.Scheme, related)
	}
	r.ledger.emit(newSubject(regardingRef, reason, relatedRef))
}

// thousands formats n, which is not negative, with commas, as in 12,345.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// plural formats a number of things.
func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return thousands(n) + " " + thing
}
