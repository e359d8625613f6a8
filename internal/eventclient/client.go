package eventclient

import (
	"context"
	"errors"
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
)

// resource is the name of the resource in both API groups.
const resource = "events"

// accept is the Accept header of responses. To encode and to decode protobuf takes a
// fraction of the time that JSON takes.
const accept = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

// Object is an Event of one of the API groups.
type Object interface {
	runtime.Object
	metav1.Object
}

// ObjectList is a list of Events of one of the API groups.
type ObjectList interface {
	runtime.Object
	metav1.ListInterface
}

// Client sends requests for Events of type T and lists of type L. Create one with [New].
// A Client is safe for concurrent use.
type Client[T Object, L ObjectList] struct {
	client restclient.Interface
	gv     schema.GroupVersion

	// onlyJSON is set when the server rejects the content type of the client.
	onlyJSON atomic.Bool
}

// New returns a Client that sends requests with the credentials and connections of the
// given client. gv is the group version of both.
//
// New returns nil if client is nil or contains a nil [restclient.RESTClient], as
// the client of a fake clientset does.
func New[T Object, L ObjectList](client restclient.Interface, gv schema.GroupVersion) *Client[T, L] {
	rest, isREST := client.(*restclient.RESTClient)
	if client == nil || isREST && rest == nil {
		return nil
	}
	if isREST {
		own := *rest //nolint:govet // copies a flag, which says what the server has not accepted so far
		own.Client = &http.Client{}
		if rest.Client != nil {
			*own.Client = *rest.Client
		}
		if own.Client.Transport == nil {
			own.Client.Transport = http.DefaultTransport
		}
		own.Client.Transport = transport{own.Client.Transport}
		client = &own
	}
	return &Client[T, L]{client: client, gv: gv}
}

// Create creates an Event in a namespace and returns the server's version of it. The
// Event requires a name.
func (c *Client[T, L]) Create(ctx context.Context, namespace string, object T) (T, error) {
	return c.send(ctx, namespace, object.GetName(), object, func() *restclient.Request {
		return c.client.Post().Namespace(namespace).Resource(resource)
	})
}

// Update replaces an Event and returns the server's version of it.
func (c *Client[T, L]) Update(ctx context.Context, namespace, name string, object T) (T, error) {
	return c.send(ctx, namespace, name, object, func() *restclient.Request {
		return c.client.Put().Namespace(namespace).Resource(resource).Name(name)
	})
}

// Patch applies a JSON merge patch (RFC 7386) to an Event and returns the server's
// version of it.
func (c *Client[T, L]) Patch(ctx context.Context, namespace, name string, data []byte) (T, error) {
	request := quiet(c.client.Patch(types.MergePatchType)).Namespace(namespace).Resource(resource).Name(name).Body(data)
	return c.object(ctx, namespace, name, request)
}

// send sends an Event in the content type of the given client. If the client cannot encode
// it, or the server rejects it, send encodes this Event and all later ones as JSON.
func (c *Client[T, L]) send(ctx context.Context, namespace, name string, object T, request func() *restclient.Request) (T, error) {
	if !c.onlyJSON.Load() {
		stored, err := c.object(ctx, namespace, name, request().UseProtobufAsDefault().Body(object))
		if !apierrors.IsUnsupportedMediaType(err) && !errors.As(err, new(runtime.NegotiateError)) {
			return stored, err
		}
		c.onlyJSON.Store(true)
	}
	body, err := runtime.Encode(scheme.Codecs.LegacyCodec(c.gv), object)
	if err != nil {
		return object, err
	}
	return c.object(ctx, namespace, name, quiet(request()).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body))
}

// quiet ignores the warnings of a request, because a webhook can warn of each heartbeat.
func quiet(request *restclient.Request) *restclient.Request {
	return request.WarningHandler(restclient.NoWarnings{}).SetHeader("Accept", accept)
}

// object sends a request for one object and returns the object in the response. A
// misbehaving proxy can mix up responses. object then returns an error, because the
// outcome of the request is unknown.
func (c *Client[T, L]) object(ctx context.Context, namespace, name string, request *restclient.Request) (T, error) {
	// Into would ignore a response of another type. A rate limiter, even one that never
	// waits, takes 16 allocations for the metrics of client-go.
	response, err := request.MaxRetries(0).Throttle(nil).Do(ctx).Get()
	var object, none T
	if err == nil {
		object, err = expect[T](response)
	}
	if err == nil && (object.GetNamespace() != namespace || object.GetName() != name) {
		err = fmt.Errorf("eventclient: request for %s %s/%s returned %s/%s", resource, namespace, name, object.GetNamespace(), object.GetName())
	}
	if err != nil {
		return none, requestError{err}
	}
	return object, nil
}

// requestError is an error of a request, which the network or the server can have caused,
// such as a response that is HTML.
type requestError struct{ error }

func (e requestError) Unwrap() error { return e.error }

// IsRequestError reports whether err is the error of a request of a [Client], and not one of
// the code around it.
func IsRequestError(err error) bool { return errors.As(err, new(requestError)) }

// expect returns an object of the type T, or an error if object is none.
func expect[T runtime.Object](object runtime.Object) (T, error) {
	expected, ok := object.(T)
	if !ok {
		return expected, &apierrors.UnexpectedObjectError{Object: object}
	}
	return expected, nil
}
