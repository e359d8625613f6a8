package eventclient

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// noThrottle admits every request at once.
var noThrottle = flowcontrol.NewFakeAlwaysRateLimiter()

// Object is an object of a resource.
type Object interface {
	runtime.Object
	metav1.Object
}

// ObjectList is a list of objects of a resource.
type ObjectList interface {
	runtime.Object
	metav1.ListInterface
}

// Client sends requests for a namespaced resource with objects of type T and lists of
// type L. Create one with [New]. A Client is safe for concurrent use.
type Client[T Object, L ObjectList] struct {
	client restclient.Interface
	json   restclient.Interface // sends objects as JSON; nil if client is the only one
	gv     schema.GroupVersion
	name   string

	// onlyJSON is set when the server rejects the content type of client.
	onlyJSON atomic.Bool
}

// New returns a Client for the named resource, such as "events". gv is the
// group version of client.
//
// New returns nil if client is nil or contains a nil [restclient.RESTClient], as
// the client of a fake clientset does.
func New[T Object, L ObjectList](client restclient.Interface, gv schema.GroupVersion, name string) *Client[T, L] {
	r := &Client[T, L]{client: client, gv: gv, name: name}
	if rest, ok := client.(*restclient.RESTClient); ok {
		if rest == nil {
			return nil
		}
		r.client, r.json = directClient(rest, gv, contentTypeOf(rest)), directClient(rest, gv, runtime.ContentTypeJSON)
	}
	if r.client == nil {
		return nil
	}
	return r
}

// Create creates object in a namespace and returns the server's version of it. The
// object requires a name.
func (r *Client[T, L]) Create(ctx context.Context, namespace string, object T) (T, error) {
	return r.send(ctx, namespace, object.GetName(), object, func(client restclient.Interface) *restclient.Request {
		return client.Post().Namespace(namespace).Resource(r.name)
	})
}

// Update replaces an object and returns the server's version of it.
func (r *Client[T, L]) Update(ctx context.Context, namespace, name string, object T) (T, error) {
	return r.send(ctx, namespace, name, object, func(client restclient.Interface) *restclient.Request {
		return client.Put().Namespace(namespace).Resource(r.name).Name(name)
	})
}

// Patch applies a JSON merge patch (RFC 7386) to an object and returns the server's
// version of it.
func (r *Client[T, L]) Patch(ctx context.Context, namespace, name string, data []byte) (T, error) {
	return r.object(ctx, namespace, name, r.client.Patch(types.MergePatchType).Namespace(namespace).Resource(r.name).Name(name).Body(data))
}

// send sends an object. If the server rejects the content type, send encodes the object
// as JSON from then on.
func (r *Client[T, L]) send(ctx context.Context, namespace, name string, object T, request func(restclient.Interface) *restclient.Request) (T, error) {
	if !r.onlyJSON.Load() {
		stored, err := r.object(ctx, namespace, name, request(r.client).UseProtobufAsDefault().Body(object))
		if r.json == nil || !apierrors.IsUnsupportedMediaType(err) {
			return stored, err
		}
		r.onlyJSON.Store(true)
	}
	return r.object(ctx, namespace, name, request(r.json).Body(object))
}

// object sends a request for one object and returns the object in the response. A
// misbehaving proxy can mix up responses. object then returns an error, because the
// outcome of the request is unknown.
func (r *Client[T, L]) object(ctx context.Context, namespace, name string, request *restclient.Request) (T, error) {
	object, err := do[T](ctx, request)
	if err == nil && (object.GetNamespace() != namespace || object.GetName() != name) {
		var none T
		return none, fmt.Errorf("eventclient: request for %s %s/%s returned %s/%s", r.name, namespace, name, object.GetNamespace(), object.GetName())
	}
	return object, err
}

// directClient returns a client for the same server with the same credentials and
// connections that sends objects in the given content type, without a rate limiter, and
// with retryAfterSeconds. It returns the given client if that fails.
func directClient(client *restclient.RESTClient, gv schema.GroupVersion, contentType string) restclient.Interface {
	httpClient := http.Client{}
	if client.Client != nil {
		httpClient = *client.Client
	}
	transport := httpClient.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	httpClient.Transport = retryAfterSeconds{transport}
	accept := runtime.ContentTypeJSON
	if contentType != accept {
		accept = contentType + "," + accept
	}
	codecs := restclient.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion()
	c, err := restclient.NewRESTClient(client.Get().URL(), "", restclient.ClientContentConfig{
		AcceptContentTypes: accept,
		ContentType:        contentType,
		GroupVersion:       gv,
		Negotiator:         runtime.NewClientNegotiator(codecs, gv),
	}, noThrottle, &httpClient)
	if err != nil {
		return client
	}
	return c
}

func do[T runtime.Object](ctx context.Context, request *restclient.Request) (T, error) {
	var none T
	// Into would ignore a response of another type.
	object, err := request.MaxRetries(0).Throttle(noThrottle).Do(ctx).Get()
	if err != nil {
		return none, err
	}
	return expect[T](object)
}

// expect returns an object of the type T, or an error if object is none.
func expect[T runtime.Object](object runtime.Object) (T, error) {
	expected, ok := object.(T)
	if !ok {
		return expected, &apierrors.UnexpectedObjectError{Object: object}
	}
	return expected, nil
}
