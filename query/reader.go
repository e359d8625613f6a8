package query

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/utils/clock"
)

// DefaultPageSize is the page size of lists, as in kubectl.
const DefaultPageSize = 500

// Clients are the clients of a Reader. A kubernetes.Interface implements it.
type Clients interface {
	// EventsV1 returns the client for events.k8s.io/v1.
	EventsV1() typedeventsv1.EventsV1Interface
	// CoreV1 returns the client for core/v1.
	CoreV1() typedcorev1.CoreV1Interface
}

// Options configure a [Reader]. The zero value has the defaults.
//
// The Reader calls the functions from the goroutine that reads the results, so not
// concurrently within one query.
type Options struct {
	// PageSize is the number of Events per request of a list. If 0, it is
	// [DefaultPageSize]. If negative, lists have one page.
	PageSize int64
	// ManagedFields keeps metadata.managedFields of Events.
	ManagedFields bool
	// Clock provides the time of queries without [Query.At]. If nil, it is the real
	// clock.
	Clock clock.PassiveClock
	// OnProgress, if set, is called after each page of a list.
	OnProgress func(Progress)
	// OnWarning, if set, is called for what makes a result incomplete or late without
	// failing it: a [*PermissionError] for one of several namespaces, or an error that
	// interrupts a watch until it is retried.
	OnWarning func(error)
}

// Progress says how far a list is.
type Progress struct {
	// Events is the number of Events that the query has read so far, selected or not.
	Events int
	// Remaining is how many Events follow in the current request of the list, as the
	// server estimates; -1 if the server does not say.
	Remaining int64
	// Done says that the list is complete.
	Done bool
}

// Reader reads Events through events.k8s.io/v1, or through core/v1 if the server does
// not serve or not permit that. Create one with [NewReader]. It is safe for concurrent
// use if the functions in [Options] are.
type Reader struct {
	opts Options
	// groups are events.k8s.io/v1 and core/v1, or twice a file.
	groups [2]group
	// unserved says that the server does not serve events.k8s.io/v1.
	unserved atomic.Bool
}

// NewReader returns a Reader that uses the given clients.
func NewReader(clients Clients, opts Options) *Reader {
	r := newReader(opts)
	r.groups = [2]group{eventsGroup(clients.EventsV1()), coreGroup(clients.CoreV1())}
	return r
}

func newReader(opts Options) *Reader {
	if opts.PageSize == 0 {
		opts.PageSize = DefaultPageSize
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.OnProgress == nil {
		opts.OnProgress = func(Progress) {}
	}
	if opts.OnWarning == nil {
		opts.OnWarning = func(error) {}
	}
	return &Reader{opts: opts}
}

// List lists the series that q selects. It requests pages while the caller iterates,
// so its memory is bounded by the page size and the number of Events without a state. The order is
// that of the server: by namespace and name, unless it takes several requests; see [Sort]. Series that
// are Ongoing or Quiet although their Events say no state come last: it takes all Events about an
// object to tell whether they are Unknown.
//
// If the list fails, List yields one error and stops. It is a [*PermissionError] if
// the server denies all requests. If it denies some of them, List yields the other
// series and calls [Options.OnWarning].
func (r *Reader) List(ctx context.Context, q Query) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		requests, err := q.plan(true)
		if err != nil {
			yield(nil, err)
			return
		}
		l := &lister{reader: r, query: &q, progress: r.opts.OnProgress}
		known := make(spans)
		var undecided []packed
		objects := sets.New[Object]()
		err = l.run(ctx, requests, func(item *Item) bool {
			known.add(item)
			if q.undecided(item) {
				undecided = append(undecided, pack(item))
				objects.Insert(item.subject())
				return true
			}
			return !q.Matches(item) || yield(item, nil)
		})
		if err == nil {
			err = r.complete(ctx, &q, known, objects)
		}
		if err != nil {
			if !errors.Is(err, errStopped) {
				yield(nil, err)
			}
			return
		}
		for i := range undecided {
			item := undecided[i].unpack()
			undecided[i] = packed{} // free the memory as soon as possible
			if known.settle(item); q.Matches(item) && !yield(item, nil) {
				return
			}
		}
	}
}

// Get returns the series of the Event with a name. It needs the permission to list
// Events, and not the one to get them. The error is NotFound (apierrors.IsNotFound) if
// the Event does not exist.
func (r *Reader) Get(ctx context.Context, namespace, name string) (*Item, error) {
	selector := fields.OneTermEqualSelector("metadata.name", name).String()
	for item, err := range r.List(ctx, Query{Namespaces: []string{namespace}, FieldSelector: selector}) {
		if err != nil || item.Name == name {
			return item, err
		}
	}
	return nil, apierrors.NewNotFound(eventsv1.Resource("events"), name)
}
