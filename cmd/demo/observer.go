package main

import (
	"cmp"
	"maps"
	"slices"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/series"
)

// observer records and checks the lifecycle of each Event. It does no I/O, and is not
// safe for concurrent use.
type observer struct {
	controllers map[string]bool
	lifecycles  []*lifecycle // in order of the first observation
	byName      map[types.NamespacedName]*lifecycle
}

// newObserver returns an observer for the Events of the given controllers. It ignores
// other Events.
func newObserver(controllers []controller) *observer {
	o := &observer{controllers: make(map[string]bool), byName: make(map[types.NamespacedName]*lifecycle)}
	for _, c := range controllers {
		o.controllers[c.name] = true
	}
	return o
}

// observe records the current state of an Event. changed is false if the state is
// known.
func (o *observer) observe(event *eventsv1.Event) (l *lifecycle, s step, changed bool) {
	if !o.controllers[event.ReportingController] {
		return nil, "", false
	}
	l = o.lifecycle(event)
	if l.resourceVersion == event.ResourceVersion {
		return nil, "", false
	}
	l.resourceVersion = event.ResourceVersion
	now, err := series.FromEvent(event)
	if err != nil {
		l.fault("invalid Event: %v", err)
		return l, stepWrong, true
	}
	return l, l.advance(*now), true
}

// observeDeletion records a deletion, which must not happen during the demo.
func (o *observer) observeDeletion(event *eventsv1.Event) {
	if o.controllers[event.ReportingController] {
		o.lifecycle(event).fault("deleted")
	}
}

// lifecycle returns the lifecycle of an Event, and creates it if necessary.
func (o *observer) lifecycle(event *eventsv1.Event) *lifecycle {
	name := types.NamespacedName{Namespace: event.Namespace, Name: event.Name}
	if l, ok := o.byName[name]; ok {
		return l
	}
	l := &lifecycle{subject: subjectOf(event)}
	if o.find(l.subject) != nil {
		l.fault("duplicate Event")
	}
	o.byName[name] = l
	o.lifecycles = append(o.lifecycles, l)
	return l
}

// find returns the first lifecycle of a subject, or nil.
func (o *observer) find(s subject) *lifecycle {
	if i := slices.IndexFunc(o.lifecycles, func(l *lifecycle) bool { return l.subject == s }); i >= 0 {
		return o.lifecycles[i]
	}
	return nil
}

// settled reports whether all Events are in their final states, given the number of
// emitted occurrences of each subject.
func (o *observer) settled(emitted map[subject]int) bool {
	for s, count := range emitted {
		if l := o.find(s); l == nil || !l.complete(count) {
			return false
		}
	}
	return true
}

// verdict is the result for one Event.
type verdict struct {
	subject  subject
	history  string
	count    int      // on the server
	emitted  int      // by the controllers
	problems []string // empty if the Event is correct
}

// verdicts checks every Event, given the number of emitted occurrences of each subject.
func (o *observer) verdicts(emitted map[subject]int) []verdict {
	var verdicts []verdict
	missing := maps.Clone(emitted)
	for _, l := range o.lifecycles {
		count := emitted[l.subject]
		delete(missing, l.subject)
		verdicts = append(verdicts, verdict{
			subject:  l.subject,
			history:  l.history(),
			count:    int(l.latest.Count),
			emitted:  count,
			problems: l.problems(count),
		})
	}
	byText := func(a, b subject) int { return cmp.Compare(a.String(), b.String()) }
	for _, s := range slices.SortedFunc(maps.Keys(missing), byText) {
		verdicts = append(verdicts, verdict{
			subject:  s,
			history:  "not observed",
			emitted:  missing[s],
			problems: []string{"missing on the server"},
		})
	}
	return verdicts
}
