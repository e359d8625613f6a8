package events

import (
	"context"
	"errors"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/eventseries/eventseries/internal/listdecoder"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// maxRecent is how many of the latest values a recentSet has at least. It has at most twice
// as many.
const maxRecent = 10_000

// recentSet has the values that were inserted lately. A program can create recorders for
// ever, each with a name of its own. The zero value is empty.
type recentSet[T comparable] struct {
	new, old sets.Set[T] // when new is full, it takes the place of old
}

func (s *recentSet[T]) insert(value T) {
	if s.new == nil || len(s.new) >= maxRecent {
		s.new, s.old = sets.New[T](), s.new
	}
	s.new.Insert(value)
}

func (s *recentSet[T]) has(value T) bool { return s.new.Has(value) || s.old.Has(value) }

// know adds the identity of a recorder, whose series a list restores.
func (b *Broadcaster) know(id identity) {
	if b.lister == nil || b.opts.Scope != SameInstance {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.identities.insert(id)
}

// emits makes the tracker list the Events of a controller that emits its first event, if the
// cluster is not too large, to restore the series that are alive. Nobody waits for that: a
// series that occurs before it is listed finds its Event by its name.
func (b *Broadcaster) emits(controller string) {
	if b.lister == nil {
		return
	}
	b.mu.Lock()
	listed := b.listed.has(controller)
	b.listed.insert(controller)
	b.mu.Unlock()
	if listed {
		return
	}
	namespaces := b.opts.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	now := b.clock.Now()
	for _, namespace := range namespaces {
		b.tracker.List(controller, namespace, now)
	}
}

// ask asks how large the cluster is.
func (d *dispatcher) ask(page tracker.Page) (result tracker.Result, err error) {
	b := d.b
	var list *eventsv1.EventList
	result, err = d.request(true, func(ctx context.Context) (err error) {
		// With a selector, the server does not say how many Events remain.
		list, err = b.page(ctx, page.Namespace, metav1.ListOptions{Limit: page.Limit})
		return err
	})
	if err != nil {
		return result, err
	}
	l := &result.Listed
	l.Events = int64(len(list.Items)) // a fake clientset has no pages
	switch remaining := list.RemainingItemCount; {
	case remaining != nil:
		l.Events += *remaining
	case list.Continue != "":
		l.Events = -1
	}
	l.Version = tracker.VersionNumber(list.ResourceVersion) // zero: the writes of the cluster are unknown
	if page.IsTooLarge(*l) {
		b.logger().V(2).Info("Not listing events of earlier processes, because the cluster is large", "reportingController", page.Controller,
			"namespace", page.Namespace, "events", l.Events, "limit", page.Most)
	}
	return result, nil
}

// list lists a page, and restores its series. The sinks of this module pass Events while
// they read the response, and return the others. If the response breaks off, the tracker
// lists the page again. To restore an Event twice does no harm.
func (d *dispatcher) list(page tracker.Page) (result tracker.Result, err error) {
	if page.Most > 0 {
		return d.ask(page)
	}
	b := d.b
	events, streamed := 0, false
	restore := func(event *eventsv1.Event) {
		b.restore(event, page.Controller)
		events++
	}
	var list *eventsv1.EventList
	result, err = d.request(true, func(ctx context.Context) (err error) {
		ctx = listdecoder.NewContext(ctx, b.lister, func(event *eventsv1.Event) {
			streamed = true
			restore(event)
		})
		list, err = b.page(ctx, page.Namespace, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("reportingController", page.Controller).String(),
			LabelSelector: series.LabelState + " notin (Finished,Unknown)", // singletons have no state
			Limit:         page.Limit,
			Continue:      page.Continue,
		})
		return err
	})
	if err != nil {
		result.Listed.Expired = apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
		return result, err
	}
	for i := range list.Items {
		restore(&list.Items[i])
	}
	result.Listed = tracker.Listed{Continue: list.Continue, Streamed: streamed}
	b.logger().V(2).Info("Listed events of earlier processes", "reportingController", page.Controller, "namespace", page.Namespace,
		"events", events, "more", list.Continue != "")
	return result, nil
}

func (b *Broadcaster) page(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	list, err := b.lister.List(ctx, namespace, opts)
	if err == nil && list == nil {
		err = errors.New("events: sink lists nothing")
	}
	return list, err
}

// restore adds a listed Event to the tracker if it belongs to a recorder of the controller.
func (b *Broadcaster) restore(event *eventsv1.Event, controller string) {
	if event.ReportingController != controller {
		return // a fake clientset does not select
	}
	if b.opts.Scope == SameInstance {
		b.mu.Lock()
		own := b.identities.has(identity{controller, event.ReportingInstance})
		b.mu.Unlock()
		if !own {
			return
		}
	}
	found, err := series.FromEvent(event)
	if err != nil {
		return // this project writes no Event like that
	}
	now := b.clock.Now()
	b.drop(b.logger(), nil, b.track(func() []tracker.Drop {
		restored, drops := b.tracker.Restore(found, now)
		if restored {
			b.counters.restored.Add(1)
		}
		return drops
	}))
}
