package bench

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/events"
)

const (
	// eventTTL is how long the server keeps an Event after its last write.
	eventTTL = time.Hour
	// otherWrites is how many objects the cluster writes per second, without Events: each
	// node renews its Lease every ten seconds. resourceVersions count them, too.
	otherWrites = 10
)

// registry is a server in memory for one group of Events.
type registry[T registered[T]] struct {
	f       *Hour
	mu      sync.Mutex
	began   time.Time
	seconds tally
	down    func(time.Duration) bool
	events  map[string]*kept[T]
	expiry  []expiring // in the order of time
	version int64
}

type registered[T any] interface {
	metav1.Object
	DeepCopy() T
}

type kept[T any] struct {
	event   T
	count   int
	changed time.Time
}

type expiring struct {
	name string
	at   time.Time
}

func newRegistry[T registered[T]](f *Hour, down func(time.Duration) bool) *registry[T] {
	return &registry[T]{f: f, began: time.Now(), down: down, events: make(map[string]*kept[T])}
}

// request counts a request. It fails during an outage.
func (r *registry[T]) request(verb string) error {
	at := time.Since(r.began)
	if r.down != nil && r.down(at) {
		return context.DeadlineExceeded // no request arrives
	}
	r.f.Requests[verb]++
	r.seconds.add(at)
	for len(r.expiry) > 0 && !r.expiry[0].at.After(time.Now()) {
		if k := r.events[r.expiry[0].name]; k != nil && time.Since(k.changed) >= eventTTL {
			delete(r.events, r.expiry[0].name)
		}
		r.expiry = r.expiry[1:]
	}
	return nil
}

// resourceVersion returns that of the cluster.
func (r *registry[T]) resourceVersion() string {
	other := int64(time.Since(r.began).Seconds() * float64(r.f.Nodes) / otherWrites)
	return strconv.FormatInt(1+r.version+other, 10)
}

// write stores an Event.
func (r *registry[T]) write(name string, event T, was *kept[T]) {
	r.version++
	event.SetResourceVersion(r.resourceVersion())
	k := &kept[T]{event, countIn(event), time.Now()}
	if was != nil {
		r.f.Counted -= was.count
	} else {
		r.f.Events++
	}
	r.events[name] = k
	r.f.Counted += k.count
	r.expiry = append(r.expiry, expiring{name, k.changed.Add(eventTTL)})
}

func countIn(event any) int {
	switch event := event.(type) {
	case *eventsv1.Event:
		if event.Series != nil {
			return int(event.Series.Count)
		}
	case *corev1.Event:
		return max(int(event.Count), 1)
	}
	return 1
}

func (r *registry[T]) create(event T) (none T, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.request("create"); err != nil {
		return none, err
	}
	name := event.GetNamespace() + "/" + event.GetName()
	if r.events[name] != nil {
		return none, apierrors.NewAlreadyExists(eventsv1.Resource("events"), name)
	}
	event = event.DeepCopy()
	r.write(name, event, nil)
	return event.DeepCopy(), nil
}

func (r *registry[T]) patch(namespace, name string, data []byte) (none T, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.request("patch"); err != nil {
		return none, err
	}
	name = namespace + "/" + name
	was := r.events[name]
	if was == nil {
		return none, apierrors.NewNotFound(eventsv1.Resource("events"), name)
	}
	event := was.event.DeepCopy()
	// Decoding sets the same fields of structs and maps as a patch, but a null is an empty
	// string then. No recorder writes an empty annotation.
	if err := json.Unmarshal(data, event); err != nil {
		return none, apierrors.NewBadRequest(err.Error())
	}
	maps.DeleteFunc(event.GetAnnotations(), func(_, value string) bool { return value == "" })
	if event.GetResourceVersion() != was.event.GetResourceVersion() {
		return none, apierrors.NewConflict(eventsv1.Resource("events"), name, nil)
	}
	if string(data) == "{}" {
		return was.event.DeepCopy(), nil
	}
	event.SetManagedFields(nil) // a patch can clear them
	r.write(name, event, was)
	return event.DeepCopy(), nil
}

// newEvents is the sink of recorders of events.k8s.io/v1. It answers questions about the
// size of the cluster, which has a hundredth of its Events in kube-system.
type newEvents struct {
	events.EventSink
	*registry[*eventsv1.Event]
}

func (s newEvents) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.create(event)
}

func (s newEvents) Patch(_ context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return s.patch(event.Namespace, event.Name, data)
}

func (s newEvents) List(_ context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verb := "list"
	if opts.FieldSelector == "" {
		verb = "ask"
	}
	if err := s.request(verb); err != nil {
		return nil, err
	}
	list := &eventsv1.EventList{}
	list.ResourceVersion = s.resourceVersion()
	if verb == "list" {
		for _, k := range s.events { // in any order: it is one page
			list.Items = append(list.Items, *k.event)
		}
		return list, nil
	}
	n := int64(len(s.events))
	if namespace != metav1.NamespaceAll {
		n /= 100
	}
	if n > 0 {
		list.Items = make([]eventsv1.Event, 1)
		n--
	}
	if n > 0 {
		list.Continue, list.RemainingItemCount = "more", &n
	}
	return list, nil
}

// oldEvents is the sink of recorders of core/v1.
type oldEvents struct{ *registry[*corev1.Event] }

func (s oldEvents) Create(event *corev1.Event) (*corev1.Event, error) { return s.create(event) }
func (s oldEvents) Update(event *corev1.Event) (*corev1.Event, error) {
	panic("bench: nobody updates " + event.Name)
}

func (s oldEvents) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.patch(event.Namespace, event.Name, data)
}
