package events

import (
	"context"
	"errors"
	"hash/fnv"
	"math"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/eventseries/eventseries/series"
)

// pageSize is how many Events are listed at a time.
const pageSize = 500

// rebuild lists the Events of a controller and puts what goes on of them back
// into the table. Nobody waits for it: a series that occurs before it has been
// listed finds its Event by its name.
func (w *writer) rebuild(id identity) {
	lister, ok := w.b.sink.(EventLister)
	if !ok || w.b.opts.SkipList {
		return
	}
	namespaces := w.b.opts.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		w.rebuildNamespace(lister, namespace, id)
	}
}

// rebuildNamespace does the part of rebuild for one namespace. That it cannot be
// listed says nothing about the next: roles are granted one by one.
func (w *writer) rebuildNamespace(lister EventLister, namespace string, id identity) {
	b := w.b
	logger := b.logger().WithValues("reportingController", id.controller, "namespace", namespace)
	opts := metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("reportingController", id.controller).String(),
		Limit:         pageSize,
	}
	backoff := wait.Backoff{Duration: retryFirst, Factor: 2, Jitter: retryJitter, Steps: math.MaxInt32, Cap: retryMax}
	listed := 0
	for {
		page, v, err := w.list(lister, namespace, opts)
		if w.ctx.Err() != nil { // it was probably cut off
			return
		}
		b.failures.noteList(b, v, err)
		switch {
		case v.outcome == written:
			for i := range page.Items {
				w.restore(&page.Items[i], id)
			}
			listed += len(page.Items)
			if page.Continue == "" {
				logger.V(2).Info("Listed the events of earlier processes", "events", listed)
				return
			}
			opts.Continue = page.Continue
		case apierrors.IsResourceExpired(err) && opts.Continue != "":
			// It took too long. What was taken in does no harm a second time.
			opts.Continue = ""
		case v.outcome == pushedBack:
			// The gate makes it wait.
		case v.outcome == troubled:
			if !w.sleep(backoff.Step()) {
				return
			}
		case v.outcome == denied:
			if _, news := b.failures.deny(permission{namespace, "list"}, b.clock.Now()); news {
				logger.Info("May not list events, goes on without: series of earlier processes are found by name", "err", err)
			}
			return
		default:
			logger.Error(err, "Cannot list events, goes on without: series of earlier processes are found by name")
			return
		}
	}
}

// list asks for one page. It passes the gate and the rate limiter like a write.
func (w *writer) list(lister EventLister, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, verdict, error) {
	if !w.throttle() {
		return nil, verdict{}, w.ctx.Err()
	}
	p, ok := w.b.gate.enter(w.ctx)
	if !ok {
		return nil, verdict{}, w.ctx.Err()
	}
	var page *eventsv1.EventList
	call := w.watch(&p, false)
	begun := w.b.clock.Now()
	err := w.request(func(ctx context.Context) (err error) {
		page, err = lister.List(ctx, namespace, opts)
		return err
	})
	call.end()
	if err == nil && page == nil {
		err = errors.New("events: sink lists nothing")
	}
	v := classify(err, true)
	w.b.gate.leave(p, true, v)
	w.b.counters.listed(v.outcome, w.b.clock.Since(begun))
	return page, v, err
}

// restore puts a listed Event back into the table if it is ours.
func (w *writer) restore(event *eventsv1.Event, id identity) {
	b := w.b
	if event.ReportingController != id.controller {
		return // a fake clientset does not select
	}
	if b.opts.Scope == SameInstance && event.ReportingInstance != id.instance {
		return
	}
	found, err := series.FromEvent(event)
	if err != nil {
		return // somebody else's: nothing that this project writes is like that
	}
	h := fnv.New32a()
	h.Write([]byte(event.Name)) // never fails
	spread := float64(h.Sum32()) / (math.MaxUint32 + 1)
	entry, eff := b.table.Restore(found, spread, b.clock.Now())
	if entry == nil {
		return
	}
	b.counters.restored.Add(1)
	b.apply(b.logger(), nil, eff)
	b.deadlines.schedule(entry)
}
