package events

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// source is what all recorders of one call of NewRecorder share.
type source struct {
	broadcaster *Broadcaster
	references  references
	identity    identity

	distinctNotes int
	emitted       sync.Once // see Broadcaster.emits
}

// recorder emits events; see [Broadcaster.NewRecorder].
type recorder struct {
	*source
	logger *klog.Logger // nil: the broadcaster's
}

// WithLogger returns a recorder that logs to logger if something is wrong with the
// events that it emits.
func (r *recorder) WithLogger(logger klog.Logger) EventRecorderLogger {
	logger = guarded(logger)
	return &recorder{source: r.source, logger: &logger}
}

// Eventf emits an event. It neither waits nor fails: an event that cannot be
// recorded is logged and counted.
func (r *recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.record(time.Time{}, regarding, related, nil, eventtype, reason, action, note, args)
}

// AnnotatedEventf emits an event with annotations. The map is copied.
func (r *recorder) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any) {
	r.record(time.Time{}, regarding, related, annotations, eventtype, reason, action, note, args)
}

// PastEventf emits an event that happened at the given time; see package compat. The
// fraction of the second is random, because the first time identifies a series.
func (r *recorder) PastEventf(at time.Time, regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if !at.IsZero() {
		at = at.Truncate(time.Second).Add(rand.N(time.Second))
	}
	r.record(at, regarding, related, nil, eventtype, reason, action, note, args)
}

// Identity returns the reporting controller and the reporting instance of the Events,
// for package compat.
func (r *recorder) Identity() (controller, instance string) {
	return r.identity.controller, r.identity.instance
}

func (r *recorder) log() klog.Logger {
	if r.logger != nil {
		return *r.logger
	}
	return r.broadcaster.logger()
}

// record emits an event that happened at the given time; zero: now.
func (r *recorder) record(at time.Time, regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args []any) {
	b := r.broadcaster
	elapsed := b.clock.Since(b.epoch)
	key := series.Key{ReportingController: r.identity.controller}
	if b.opts.Scope == SameInstance {
		key.ReportingInstance = r.identity.instance
	}
	key.Reason, key.Action = reasonAndAction(reason, action)
	key.Type = eventtype
	if eventtype != corev1.EventTypeNormal && eventtype != corev1.EventTypeWarning {
		_ = r.references.set(&key.Regarding, regarding) // as far as it is known
		r.refuse(DropInvalidType, &key, eventtype, nil, note, args)
		return
	}
	err := r.references.set(&key.Regarding, regarding)
	if err != nil {
		r.refuse(DropInvalidObject, &key, eventtype, err, note, args)
		return
	}
	if related != nil {
		if err := r.references.set(&key.Related, related); err != nil {
			r.omit("its related object", &b.counters.relatedOmitted, err, &key)
		}
	}
	formatted := ""
	if r.distinctNotes > 0 {
		formatted = formatNote(note, args)
		key.Note = formatted
	}

	// The hot path: an ongoing series, no watcher, and nothing to keep.
	watched := b.watchers.count.Load() > 0
	entry, counted, wantNote := b.tracker.Count(&key, elapsed)
	if counted && !watched && !wantNote && formatted == "" && len(annotations) == 0 {
		return
	}

	if !counted && sanitizeKey(&key) {
		entry, counted, wantNote = b.tracker.Count(&key, elapsed)
	}
	if !counted {
		// No request can be made for such a namespace, so it would be retried for ever.
		if wrong := restclient.IsValidPathSegmentName(key.Regarding.Namespace); len(wrong) > 0 {
			err := fmt.Errorf("events: namespace %q %s", key.Regarding.Namespace, strings.Join(wrong, ", "))
			r.refuse(DropInvalidObject, &key, eventtype, err, note, args)
			return
		}
	}

	annotations, err = sanitizeAnnotations(annotations)
	if err != nil {
		r.omit("some annotations", &b.counters.annotationsOmitted, err, &key)
	}
	occurrence := tracker.Occurrence{
		Note:          formatted,
		DistinctNotes: r.distinctNotes,
		Instance:      r.identity.instance,
		Annotations:   annotations,
		At:            at,
	}
	if r.distinctNotes == 0 && (!counted || watched || wantNote) {
		occurrence.Note = formatNote(note, args)
	}
	now := b.clock.Now()
	if counted {
		b.tracker.Describe(entry, occurrence, now)
	} else {
		b.drop(r.log(), nil, b.track(func() []tracker.Drop { return b.tracker.Observe(&key, occurrence, now) }))
		r.emitted.Do(func() { b.emits(r.identity) })
		if d := b.dispatcher.Load(); d != nil {
			d.poke()
		}
	}
	if watched {
		single := b.tracker.Single(&key, occurrence, now)
		b.watchers.send(single.Event())
	}
}

// omit counts and logs an event that is recorded without a part.
func (r *recorder) omit(part string, counter *atomic.Uint64, err error, key *series.Key) {
	counter.Add(1)
	if suppressed, ok := r.broadcaster.logLimit.allow("without "+part, r.broadcaster.clock.Now()); ok {
		r.log().Error(err, "Recorded an incomplete event", "without", part, "suppressed", suppressed, "eventReason", key.Reason, "action", key.Action,
			"regarding", klog.KRef(key.Regarding.Namespace, key.Regarding.Name))
	}
}

// refuse drops an event that cannot be recorded.
func (r *recorder) refuse(reason DropReason, key *series.Key, eventtype string, err error, note string, args []any) {
	r.broadcaster.counters.refused.Add(1)
	sanitizeKey(key)
	key.Type = eventtype
	drops := []tracker.Drop{{Reason: tracker.DropReason(reason), Key: *key, Note: formatNote(note, args), Count: 1}}
	r.broadcaster.drop(r.log(), err, r.broadcaster.track(func() []tracker.Drop { return drops }))
}
