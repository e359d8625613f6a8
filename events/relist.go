package events

import (
	"context"
	"errors"
	"math"
	"slices"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/eventseries/eventseries/internal/listdecoder"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// pageSize is how many Events are listed at a time. A sink returns them all in memory.
// streamedPageSize is for sinks that do not: the server takes half of the time, because
// etcd counts all Events for each page. The size makes no difference to API Priority and
// Fairness: with a selector, any list among 1,000 Events takes the most seats.
const (
	pageSize         = 500
	streamedPageSize = 5000
)

// relist lists the Events of a controller and restores the series that are alive.
// Nobody waits for it: a series that occurs before it is listed finds its Event by
// its name.
func (d *dispatcher) relist(id identity) {
	lister, ok := d.b.sink.(EventLister)
	if !ok || d.b.opts.SkipList {
		return
	}
	namespaces := d.b.opts.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	// A permission can come late, for example if a role is created after the
	// Deployment. The list is worth it as long as earlier Events exist.
	backoff := wait.Backoff{Duration: relistMax, Factor: 2, Steps: deniedLists}
	for {
		namespaces = slices.DeleteFunc(slices.Clone(namespaces), func(namespace string) bool {
			return !d.relistNamespace(lister, namespace, id)
		})
		if len(namespaces) == 0 || backoff.Steps == 0 || !d.sleep(backoff.Step()) {
			return
		}
	}
}

// relistNamespace is relist for one namespace. It reports whether the server denies
// the list. An error says nothing about others: roles are granted one by one.
func (d *dispatcher) relistNamespace(lister EventLister, namespace string, id identity) (denied bool) {
	b := d.b
	logger := b.logger().WithValues("reportingController", id.controller, "namespace", namespace)
	opts := metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("reportingController", id.controller).String(),
		LabelSelector: series.LabelState + " notin (Finished,Unknown)", // singletons have no state
		Limit:         pageSize,
	}
	backoff := wait.Backoff{Duration: relistFirst, Factor: 2, Jitter: retryJitter, Steps: math.MaxInt32, Cap: relistMax}
	listed := 0
	restore := func(event *eventsv1.Event) {
		if d.ctx.Err() == nil { // otherwise the recorder stops
			b.restore(event, id)
			listed++
		}
	}
	for {
		before := listed
		page, outcome, err := d.listPage(lister, namespace, opts, restore)
		streams := listed > before
		if d.ctx.Err() != nil { // the stop probably cut off the request
			return false
		}
		b.outages.noteList(b, outcome, err)
		switch {
		case outcome == tracker.Written:
			for i := range page.Items {
				restore(&page.Items[i])
			}
			d.poke()
			if page.Continue == "" {
				logger.V(2).Info("Listed the events of earlier processes", "events", listed)
				return false
			}
			opts.Continue = page.Continue
			if streams {
				opts.Limit = streamedPageSize
			}
		case outcome == tracker.PushedBack:
			// The dispatcher waits until the pause is over.
		case outcome == tracker.Troubled, apierrors.IsResourceExpired(err) && opts.Continue != "":
			if outcome != tracker.Troubled {
				// The list took too long. To restore an Event a second time does no harm. A
				// server that is too slow for the list gets a pause before the next one.
				opts.Continue = ""
			}
			opts.Limit = pageSize // the server may be too slow for more
			if !d.sleep(backoff.Step()) {
				return false
			}
		case outcome == tracker.Denied:
			if _, news := b.outages.deny(permission{namespace, "list"}, b.clock.Now()); news {
				logger.V(2).Info("Missing permission to list events. Series of earlier processes are found by name", "err", err)
			}
			return true
		default:
			logger.Error(err, "Cannot list events. Series of earlier processes are found by name")
			return false
		}
	}
}

// listPage lists one page, when the dispatcher permits it. The sinks of this module pass
// Events to receive while they read the response, and return the others. If the response
// breaks off, the caller lists the page again. To restore an Event twice does no harm.
func (d *dispatcher) listPage(lister EventLister, namespace string, opts metav1.ListOptions, receive listdecoder.Receiver) (page *eventsv1.EventList, _ tracker.Outcome, err error) {
	b := d.b
	var result tracker.Result
	l := &listRequest{done: make(chan struct{}), make: func() tracker.Result {
		began := b.clock.Now()
		err = d.request(func(ctx context.Context) (err error) {
			page, err = lister.List(listdecoder.NewContext(ctx, lister, receive), namespace, opts)
			return err
		})
		if err == nil && page == nil {
			err = errors.New("events: sink lists nothing")
		}
		result = classify(err, true)
		b.counters.listed(result.Outcome, b.clock.Since(began))
		return result
	}}
	d.listing.Add(1)
	select {
	case d.lists <- l:
	case <-d.ctx.Done():
		return nil, tracker.Troubled, d.ctx.Err()
	}
	<-l.done
	return page, result.Outcome, err
}

// restore adds a listed Event to the tracker if it belongs to the recorder.
func (b *Broadcaster) restore(event *eventsv1.Event, id identity) {
	if event.ReportingController != id.controller {
		return // a fake clientset does not select
	}
	if b.opts.Scope == SameInstance && event.ReportingInstance != id.instance {
		return
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
