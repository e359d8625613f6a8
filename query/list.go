package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxRestarts is how often the server can forget the version of a list without progress
// in between.
const maxRestarts = 5

// eventKind is the type of Events.
var eventKind = eventsv1.SchemeGroupVersion.WithKind("Event")

// errStopped says that the caller of an iterator stopped.
var errStopped = errors.New("query: stopped")

// errOnlyCore says that a request is for core/v1.
var errOnlyCore = errors.New("query: only core/v1 serves the request")

// lister carries out the requests of one query, one after another.
type lister struct {
	reader *Reader
	query  *Query
	// begin, if set, is called when the list of a request begins, and again when it begins
	// anew because the server has forgotten its version. Then visit sees Events again.
	// Otherwise, the rest of the list is from a later version.
	begin    func()
	progress func(Progress)
	events   int      // how many Events were read
	done     []listed // the requests so far, without denied ones
}

// listed is a request that was carried out.
type listed struct {
	request
	group   *group // that served it
	version string // resourceVersion of the list
}

// run lists the pages of all requests, and visits each Event once. It returns errStopped
// if visit returns false.
func (l *lister) run(ctx context.Context, requests []request, visit func(*Item) bool) error {
	var denials []error
	for len(requests) > 0 {
		r := requests[0]
		requests = requests[1:]
		group, version, err := l.list(ctx, &r, visit)
		var denied *PermissionError
		switch {
		case err == nil:
			l.done = append(l.done, listed{r, group, version})
		case errors.As(err, &denied):
			if !r.optional {
				denials = append(denials, err)
			}
			narrowed := r.narrowed()
			for i := range narrowed {
				narrowed[i].optional = !slices.ContainsFunc(l.query.Objects, func(o Object) bool { return o.Namespace == narrowed[i].namespace })
			}
			requests = append(narrowed, requests...)
		default:
			return err
		}
	}
	if len(l.done) == 0 && len(denials) > 0 {
		return denials[len(denials)-1] // the narrowest
	}
	for _, err := range denials {
		l.reader.opts.OnWarning(err)
	}
	l.progress(Progress{Events: l.events, Done: true})
	return nil
}

// list carries out a request through the first group that the server serves and permits.
func (l *lister) list(ctx context.Context, r *request, visit func(*Item) bool) (by *group, version string, err error) {
	visited := 0
	err = l.reader.through("list", r.namespace, func(g *group) error {
		if r.onlyCore && g != &l.reader.groups[1] {
			return errOnlyCore
		}
		by = g
		version, err = l.pages(ctx, g, r, func(event *eventsv1.Event) bool {
			visited++
			item := l.reader.item(l.query, event)
			return !r.covers(item) || !l.belongs(item, len(l.done)) || visit(item)
		})
		if visited > 0 && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
			return fmt.Errorf("after %d events: %s", l.events, err.Error()) // not wrapped: the other group would repeat Events
		}
		return err
	})
	return by, version, err
}

// belongs reports whether no request before n covers an item, so that an item of two
// requests is visited once.
func (l *lister) belongs(item *Item, n int) bool {
	return !slices.ContainsFunc(l.done[:n], func(r listed) bool { return r.covers(item) })
}

// pages lists the pages of a request and visits each Event once. It returns the version of
// the list.
func (l *lister) pages(ctx context.Context, g *group, r *request, visit func(*eventsv1.Event) bool) (version string, err error) {
	opts := r.options(g)
	opts.Limit = max(l.reader.opts.PageSize, 0)
	last, restarts := "", 0     // key of the last Event, and restarts since then
	known := sets.New[string]() // tokens, and the first Events of pages
	for {
		if l.begin != nil && opts.Continue == "" {
			last = ""
			l.begin()
		}
		page, err := g.list(ctx, r.namespace, opts)
		switch {
		case err == nil:
		case opts.Continue != "" && isExpired(err) && restarts < maxRestarts:
			// The server offers a token for the rest at its present version. Without one,
			// begin anew and skip what was visited.
			restarts++
			opts.Continue = ""
			if l.begin == nil {
				opts.Continue = restartToken(err)
			}
			continue
		case last == "" && apierrors.IsBadRequest(err) && len(r.fields) > 0 && !r.unselected:
			// An old server, or one that is not kube-apiserver, knows fewer fields.
			r.unselected = true
			opts.FieldSelector = r.options(g).FieldSelector
			continue
		default:
			return "", err
		}
		if opts.Continue == "" {
			known.Clear()
		}
		repeats := len(page.Items) > 0 && known.Has(identity(&page.Items[0]))
		if repeats {
			page.Items = nil
		}
		if len(page.Items) > 0 {
			known.Insert(identity(&page.Items[0]))
		}
		l.events += len(page.Items)
		for i := range page.Items {
			event := &page.Items[i]
			key := event.Namespace + "/" + event.Name
			if restarts > 0 && key <= last {
				continue
			}
			last = key
			if l.begin == nil {
				restarts = 0
			}
			if !visit(event) {
				return "", errStopped
			}
		}
		progress := Progress{Events: l.events, Remaining: -1}
		if n := page.RemainingItemCount; n != nil {
			progress.Remaining = *n
		} else if page.Continue == "" {
			progress.Remaining = 0
		}
		l.progress(progress)
		if page.Continue == "" && !repeats {
			return page.ResourceVersion, nil
		}
		if repeats || known.Has(page.Continue) {
			err := fmt.Errorf("query: list events in %s: the server repeats pages, so Events can be missing", where(r.namespace))
			if l.begin != nil { // what a watch does not find is deleted
				return "", err
			}
			l.reader.opts.OnWarning(err)
			return page.ResourceVersion, nil
		}
		known.Insert(page.Continue)
		opts.Continue = page.Continue
	}
}

func identity(event *eventsv1.Event) string {
	return event.Namespace + "/" + event.Name + "/" + string(event.UID)
}

// isExpired reports whether the server has forgotten the version of a request. Both
// reasons have the code 410.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// restartToken returns the token with which the server continues an expired list at its
// present version, or an empty string.
func restartToken(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}

// item returns an Event of a response as a series. The result does not refer to the list
// of the response, which can be large.
func (r *Reader) item(q *Query, event *eventsv1.Event) *Item {
	own := *event
	own.SetGroupVersionKind(eventKind) // which Events in a list lack
	item := FromEvent(&own, r.at(q))
	if !r.opts.ManagedFields {
		own.ManagedFields = nil
	}
	return item
}

// at returns the time to which states of a query refer now.
func (r *Reader) at(q *Query) time.Time {
	if q.At.IsZero() {
		return r.opts.Clock.Now()
	}
	return q.At
}
