package events

import (
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/reference"
	"github.com/eventseries/eventseries/internal/safelog"
	"github.com/eventseries/eventseries/internal/sanitize"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// source is what all recorders of one call of NewRecorder share.
type source struct {
	broadcaster *Broadcaster
	references  reference.Resolver
	identity    sanitize.Identity

	distinctNotes int
	combinedNote  func(*eventsv1.Event) string // nil: the note of the occurrence
	emitted       sync.Once                    // see lists.add
}

// recorder emits events; see [Broadcaster.NewRecorder].
type recorder struct {
	*source
	logger *klog.Logger // nil: the broadcaster's
}

// WithLogger returns a recorder that logs to logger if something is wrong with the
// events that it emits.
func (r *recorder) WithLogger(logger klog.Logger) EventRecorderLogger {
	logger = safelog.Guard(logger)
	return &recorder{source: r.source, logger: &logger}
}

// Eventf emits an event. It neither waits nor fails: an event that cannot be
// recorded is logged and counted.
func (r *recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.record(&occurrence{regarding: regarding, related: related, eventtype: eventtype, reason: reason, action: action, note: note, args: args})
}

// AnnotatedEventf emits an event with annotations. The map is copied.
func (r *recorder) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any) {
	r.record(&occurrence{regarding: regarding, related: related, annotations: annotations, eventtype: eventtype, reason: reason, action: action, note: note, args: args})
}

// Identity returns the reporting controller and the reporting instance of the Events,
// for package compat.
func (r *recorder) Identity() (controller, instance string) {
	return r.identity.Controller, r.identity.Instance
}

func (r *recorder) log() klog.Logger {
	if r.logger != nil {
		return *r.logger
	}
	return r.broadcaster.logger()
}

// occurrence is a call of Eventf.
type occurrence struct {
	regarding, related              runtime.Object
	annotations                     map[string]string
	eventtype, reason, action, note string
	args                            []any
}

// record emits an event. It returns early on the hot path: an ongoing series counts
// another occurrence, nobody watches, and there is no note and no annotation to keep.
func (r *recorder) record(o *occurrence) {
	b := r.broadcaster
	elapsed := b.clock.Since(b.tracker.Epoch())
	var key series.Key
	reason, err := r.setKey(&key, o)
	switch {
	case b.opts.Filter != nil && b.excludes(key):
		b.counters.filtered.Add(1)
		return
	case reason != "":
		r.refuse(reason, &key, o, err)
		return
	case err != nil:
		r.omitRelated(err, &key)
	}
	entry, counted, wantNote := (*tracker.Entry)(nil), false, false
	annotated := len(o.annotations) > 0 // then it is counted and described in one step, and no write comes between
	if !annotated {
		entry, counted, wantNote = b.tracker.Count(&key, elapsed)
	}
	watched := b.watchers.count.Load() > 0
	if counted && !watched && !wantNote && key.Note == "" {
		return
	}

	if !counted {
		given := key
		err, relatedErr := sanitize.Key(&key)
		if err != nil {
			r.refuse(tracker.DropInvalidObject, &key, o, err)
			return
		}
		if relatedErr != nil {
			r.omitRelated(relatedErr, &key)
		}
		if key != given && !annotated {
			entry, counted, wantNote = b.tracker.Count(&key, elapsed)
		}
	}
	if !counted && (isNameless(key.Regarding) || !key.Related.IsZero() && isNameless(key.Related)) && b.report.incomplete.allow("nameless", b.clock.Now()) {
		r.log().Info("Recorded an event about an object without a name", "eventReason", key.Reason, "action", key.Action, "kind", key.Regarding.Kind,
			"regarding", klog.KRef(key.Regarding.Namespace, key.Regarding.Name), "relatedKind", key.Related.Kind)
	}
	details := r.details(&key, o, !counted || watched || wantNote)
	now := b.clock.Now()
	if counted {
		b.tracker.Describe(entry, details, now)
	} else {
		b.drop(r.log(), nil, b.tracker.Observe(&key, details, now))
		r.emitted.Do(func() { b.lists.add(r.identity.Controller) })
		b.poke()
	}
	if watched {
		single := b.tracker.Single(&key, details, now)
		b.watchers.send(single.Event())
	}
}

// excludes reports whether the filter excludes a key. If it panics, it does not.
func (b *Broadcaster) excludes(key series.Key) bool {
	defer b.recoverAndLog("Filter")
	return !b.opts.Filter(key)
}

// isNameless reports whether objects that differ can have this reference: those to be
// created with a generateName have no other.
func isNameless(ref series.Reference) bool { return ref.Name == "" && ref.UID == "" }

// setKey sets the key of the series of an occurrence, as far as it is known. reason says
// why the occurrence cannot be recorded, if it is not empty. Otherwise err says why it has no related object.
func (r *recorder) setKey(key *series.Key, o *occurrence) (reason tracker.DropReason, err error) {
	b := r.broadcaster
	key.ReportingController = r.identity.Controller
	if b.opts.Scope == SameInstance {
		key.ReportingInstance = r.identity.Instance
	}
	key.Type = o.eventtype
	key.Reason, key.Action = sanitize.ReasonAndAction(o.reason, o.action)
	err = r.references.Set(&key.Regarding, o.regarding)
	switch {
	case o.eventtype != corev1.EventTypeNormal && o.eventtype != corev1.EventTypeWarning:
		return tracker.DropInvalidType, nil
	case err != nil:
		return tracker.DropInvalidObject, err
	}
	if o.related != nil {
		err = r.references.Set(&key.Related, o.related)
	}
	if r.distinctNotes > 0 {
		key.Note = sanitize.Note(o.note, o.args)
	}
	return "", err
}

// details returns what a series keeps of an occurrence with the given key. It formats the
// note only if noted is true or the note is in the key.
func (r *recorder) details(key *series.Key, o *occurrence, noted bool) tracker.Occurrence {
	annotations, err := sanitize.Annotations(o.annotations, tracker.MaxAnnotationBytes)
	if err != nil {
		r.omit("some annotations", &r.broadcaster.counters.annotationsOmitted, err, key)
	}
	details := tracker.Occurrence{Note: key.Note, DistinctNotes: r.distinctNotes, Instance: r.identity.Instance, Annotations: annotations}
	if r.distinctNotes == 0 && noted {
		details.Note = sanitize.Note(o.note, o.args)
	}
	if r.combinedNote != nil && details.Note != "" {
		single := r.broadcaster.tracker.Single(key, details, r.broadcaster.clock.Now())
		details.Combined = sanitize.Note("%v", []any{combination(func() string { return r.combinedNote(single.Event()) })})
	}
	return details
}

// combination is an argument of a note. A panic of CombinedNote becomes a part of the note.
type combination func() string

func (c combination) String() string { return c() }

func (r *recorder) omitRelated(err error, key *series.Key) {
	r.omit("its related object", &r.broadcaster.counters.relatedOmitted, err, key)
	key.Related = series.Reference{}
}

// omit counts and logs an event that is recorded without a part.
func (r *recorder) omit(part string, counter *atomic.Uint64, err error, key *series.Key) {
	counter.Add(1)
	if r.broadcaster.report.incomplete.allow(part, r.broadcaster.clock.Now()) {
		r.log().Error(err, "Recorded an incomplete event", "without", part, "eventReason", key.Reason, "action", key.Action,
			"regarding", klog.KRef(key.Regarding.Namespace, key.Regarding.Name), "related", klog.KRef(key.Related.Namespace, key.Related.Name))
	}
}

// refuse drops an event that cannot be recorded.
func (r *recorder) refuse(reason tracker.DropReason, key *series.Key, o *occurrence, err error) {
	b := r.broadcaster
	_, _ = sanitize.Key(key) // for the log
	b.drop(r.log(), err, b.tracker.Reject(key, tracker.Occurrence{Note: sanitize.Note(o.note, o.args)}, reason))
}
