package query

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/eventseries/eventseries/internal/apigroup"
)

// group reads Events through one API group, as Events of events.k8s.io/v1.
type group struct {
	resource schema.GroupResource
	// field translates a field of a selector from events.k8s.io/v1.
	field fields.TransformFunc
	list  func(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error)
	watch func(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error)
	// event converts an object of a watch. It returns nil if that is no Event.
	event func(runtime.Object) *eventsv1.Event
}

func eventsGroup(client typedeventsv1.EventsV1Interface) group {
	g := group{
		resource: eventsv1.Resource("events"),
		field:    eventsField,
		list: func(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
			return client.Events(namespace).List(ctx, opts)
		},
		watch: func(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
			return client.Events(namespace).Watch(ctx, opts)
		},
		event: func(object runtime.Object) *eventsv1.Event {
			event, _ := object.(*eventsv1.Event)
			return event
		},
	}
	if rest := restOf(client.RESTClient()); rest != nil {
		g.list, g.watch = restList[*eventsv1.EventList](rest), restWatch(rest)
	}
	return g
}

func coreGroup(client typedcorev1.CoreV1Interface) group {
	list := func(ctx context.Context, namespace string, opts metav1.ListOptions) (*corev1.EventList, error) {
		return client.Events(namespace).List(ctx, opts)
	}
	watchCore := func(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
		return client.Events(namespace).Watch(ctx, opts)
	}
	if rest := restOf(client.RESTClient()); rest != nil {
		list, watchCore = restList[*corev1.EventList](rest), restWatch(rest)
	}
	return group{
		resource: corev1.Resource("events"),
		field:    coreField,
		list: func(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
			page, err := list(ctx, namespace, opts)
			if err != nil {
				return nil, err
			}
			converted := &eventsv1.EventList{ListMeta: page.ListMeta, Items: make([]eventsv1.Event, len(page.Items))}
			for i := range page.Items {
				converted.Items[i] = *apigroup.FromCore(&page.Items[i])
			}
			return converted, nil
		},
		watch: watchCore,
		event: func(object runtime.Object) *eventsv1.Event {
			event, _ := object.(*corev1.Event)
			return apigroup.FromCore(event)
		},
	}
}

// restOf returns client, or nil if it contains a nil RESTClient, as that of a fake
// clientset does.
func restOf(client restclient.Interface) restclient.Interface {
	if rest, ok := client.(*restclient.RESTClient); ok && rest == nil {
		return nil
	}
	return client
}

// unlimited admits all requests: a client's default rate limit of 5 requests per second
// would slow down long lists, whose requests are sequential anyway.
var unlimited = flowcontrol.NewFakeAlwaysRateLimiter()

// get returns a request that prefers protobuf, which is faster to decode than JSON.
func get(rest restclient.Interface, namespace string, opts metav1.ListOptions) *restclient.Request {
	return rest.Get().Namespace(namespace).Resource("events").VersionedParams(&opts, scheme.ParameterCodec).
		SetHeader("Accept", runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON).Throttle(unlimited)
}

func restList[L runtime.Object](rest restclient.Interface) func(context.Context, string, metav1.ListOptions) (L, error) {
	return func(ctx context.Context, namespace string, opts metav1.ListOptions) (L, error) {
		var none L
		object, err := get(rest, namespace, opts).Do(ctx).Get()
		if err != nil {
			return none, err
		}
		list, ok := object.(L)
		if !ok {
			return none, &apierrors.UnexpectedObjectError{Object: object}
		}
		return list, nil
	}
}

func restWatch(rest restclient.Interface) func(context.Context, string, metav1.ListOptions) (watch.Interface, error) {
	return func(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
		opts.Watch = true
		return get(rest, namespace, opts).Watch(ctx)
	}
}

// through makes a request through events.k8s.io/v1, or through core/v1 if the server
// does not serve or not permit the former. If it permits neither, the error is a
// [*PermissionError].
func (r *Reader) through(verb, namespace string, request func(*group) error) error {
	var denied, missing error
	for i := range r.groups {
		g := &r.groups[i]
		if i == 0 && r.unserved.Load() {
			continue
		}
		err := request(g)
		switch {
		case errors.Is(err, errOnlyCore):
		case apierrors.IsForbidden(err):
			if denied == nil {
				denied = g.denied(verb, namespace, err)
			}
		case apierrors.IsNotFound(err): // the server lists Events of a namespace that does not exist, so it is the group
			if i == 0 {
				r.unserved.Store(true)
			}
			missing = err
		case err != nil && !errors.Is(err, errStopped):
			return fmt.Errorf("query: cannot %s events in %s: %w", verb, where(namespace), err)
		default:
			return err
		}
	}
	if denied != nil {
		return denied
	}
	return fmt.Errorf("query: the server serves Events neither in events.k8s.io/v1 nor in core/v1: %w", missing)
}

// denied returns the error of a request that the server denies.
func (g *group) denied(verb, namespace string, err error) error {
	return &PermissionError{Verb: verb, Group: g.resource.Group, Resource: g.resource.Resource, Namespace: namespace, Err: err}
}

func where(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return fmt.Sprintf("namespace %q", namespace)
}
