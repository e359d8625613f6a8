package main

import (
	"cmp"
	"maps"
	"slices"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/series"
)

// observer keeps what was seen of each Event on the server, and judges it. It
// does no I/O, and is not safe for concurrent use.
type observer struct {
	controllers map[string]bool
	lives       []*life // in the order in which they began
	byName      map[types.NamespacedName]*life
}

// newObserver returns an observer of the Events that loops emit. It ignores
// those of others.
func newObserver(loops []loop) *observer {
	o := &observer{controllers: make(map[string]bool), byName: make(map[types.NamespacedName]*life)}
	for _, l := range loops {
		o.controllers[l.controller] = true
	}
	return o
}

// observe takes in an Event as the server has it now. seen is false if that is
// nothing new.
func (o *observer) observe(event *eventsv1.Event) (l *life, s step, seen bool) {
	if !o.controllers[event.ReportingController] {
		return nil, "", false
	}
	l = o.life(event)
	if l.resourceVersion == event.ResourceVersion {
		return nil, "", false
	}
	l.resourceVersion = event.ResourceVersion
	now, err := series.FromEvent(event)
	if err != nil {
		l.fault("it cannot be read: %v", err)
		return l, stepWrong, true
	}
	return l, l.advance(*now), true
}

// observeDeletion takes in that an Event is not on the server any more, which
// is to happen to none as long as the demo runs.
func (o *observer) observeDeletion(event *eventsv1.Event) {
	if o.controllers[event.ReportingController] {
		o.life(event).fault("it was deleted")
	}
}

// life returns that of an Event, which begins here if it is seen for the first
// time.
func (o *observer) life(event *eventsv1.Event) *life {
	name := types.NamespacedName{Namespace: event.Namespace, Name: event.Name}
	if l, ok := o.byName[name]; ok {
		return l
	}
	l := &life{subject: subjectOf(event)}
	if o.find(l.subject) != nil {
		l.fault("it is not the first Event of its kind")
	}
	o.byName[name] = l
	o.lives = append(o.lives, l)
	return l
}

// find returns the first life of a subject, nil if there is none.
func (o *observer) find(s subject) *life {
	if i := slices.IndexFunc(o.lives, func(l *life) bool { return l.subject == s }); i >= 0 {
		return o.lives[i]
	}
	return nil
}

// settled reports whether nothing more is to come, given how often each subject
// was emitted.
func (o *observer) settled(emitted map[subject]int) bool {
	for s, count := range emitted {
		if l := o.find(s); l == nil || !l.over(count) {
			return false
		}
	}
	return true
}

// verdict is what the demo finds of one Event.
type verdict struct {
	subject  subject
	history  string
	count    int      // on the server
	emitted  int      // by the controllers
	problems []string // none: all is well
}

// verdicts judges every Event, given how often each subject was emitted.
func (o *observer) verdicts(emitted map[subject]int) []verdict {
	var verdicts []verdict
	missing := maps.Clone(emitted)
	for _, l := range o.lives {
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
			history:  "never seen",
			emitted:  missing[s],
			problems: []string{"the server has no such Event"},
		})
	}
	return verdicts
}
