// Package eventclient is the typed client of the event sinks. Unlike client-go's, it sends one request
// per call, at once: it ignores the rate limiter of the client that it is made from, and does not retry.
// The broadcaster limits and retries requests itself, because it knows which ones matter most.
//
// # Guarantees
//
//   - Requests use the credentials, connections and transports of the given client.
//   - Events are sent in protobuf. If the server rejects that with a 415, the Event and all later ones
//     are sent as JSON. A merge patch is always JSON. Responses are protobuf if possible.
//   - A response of another type is an [apierrors.UnexpectedObjectError]. A response with another object
//     is an error. Other errors are those of client-go.
//   - A Retry-After header counts, with seconds or a date, also beside a Status.
//   - A response with more than 16 MiB, or a page whose Events take more memory, is an error.
//
// Without a [restclient.RESTClient], responses have no bound, and Retry-After contains only seconds.
package eventclient

import (
	"cmp"
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

// accept is the Accept header of responses. Protobuf takes a fraction of the time that JSON takes.
const accept = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

// Object is an Event of one of the API groups.
type Object interface {
	runtime.Object
	metav1.Object
}

// Client sends requests for Events of type T and lists of type L. Create one with [New]. It is safe for
// concurrent use.
type Client[T Object, L runtime.Object] struct {
	client   restclient.Interface
	gv       schema.GroupVersion
	onlyJSON atomic.Bool // the server rejects the content type of the client
}

// New returns a Client that sends requests with the credentials and connections of the given client. gv
// is the group version of both. New returns nil if client is nil or contains a nil
// [restclient.RESTClient], as the client of a fake clientset does.
func New[T Object, L runtime.Object](client restclient.Interface, gv schema.GroupVersion) *Client[T, L] {
	rest, isREST := client.(*restclient.RESTClient)
	if client == nil || isREST && rest == nil {
		return nil
	}
	if isREST {
		client = withTransport(rest, gv)
	}
	return &Client[T, L]{client: client, gv: gv}
}

// withTransport returns a client for the API of rest that uses a transport.
func withTransport(rest *restclient.RESTClient, gv schema.GroupVersion) restclient.Interface {
	client := *cmp.Or(rest.Client, http.DefaultClient)
	client.Transport = transport{cmp.Or(client.Transport, http.DefaultTransport)}
	content := restclient.ClientContentConfig{
		AcceptContentTypes: accept,
		ContentType:        runtime.ContentTypeProtobuf,
		GroupVersion:       gv,
		Negotiator:         runtime.NewClientNegotiator(scheme.Codecs.WithoutConversion(), gv),
	}
	own, err := restclient.NewRESTClient(rest.Get().URL(), "", content, nil, &client)
	if err != nil {
		return rest // which has the same content, and has no error
	}
	return own
}

// Create creates an Event, which has a name, in a namespace and returns the server's version of it. It sends
// protobuf. If the server rejects that, or a client that is no RESTClient cannot encode it, Create encodes this
// Event and all later ones as JSON.
func (c *Client[T, L]) Create(ctx context.Context, namespace string, object T) (T, error) {
	request := func() *restclient.Request { return c.client.Post().Namespace(namespace).Resource(resource) }
	if !c.onlyJSON.Load() {
		stored, err := c.object(ctx, namespace, object.GetName(), request().UseProtobufAsDefault().Body(object))
		if !apierrors.IsUnsupportedMediaType(err) && !errors.As(err, new(runtime.NegotiateError)) {
			return stored, err
		}
		c.onlyJSON.Store(true)
		Charge(ctx)
	}
	body, err := runtime.Encode(scheme.Codecs.LegacyCodec(c.gv), object)
	if err != nil {
		return object, err
	}
	return c.object(ctx, namespace, object.GetName(), request().SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body))
}

// Patch applies a JSON merge patch (RFC 7386) to an Event and returns the server's version of it.
func (c *Client[T, L]) Patch(ctx context.Context, namespace, name string, data []byte) (T, error) {
	return c.object(ctx, namespace, name, c.client.Patch(types.MergePatchType).Namespace(namespace).Resource(resource).Name(name).Body(data))
}

// List returns the Events that match opts in a namespace, in all if that is empty.
func (c *Client[T, L]) List(ctx context.Context, namespace string, opts metav1.ListOptions) (L, error) {
	return do[L](ctx, c.client.Get().Namespace(namespace).Resource(resource).VersionedParams(&opts, scheme.ParameterCodec))
}

// object sends a request for one object and returns that of the response. It is an error if that is
// another one: a proxy can mix up responses.
func (c *Client[T, L]) object(ctx context.Context, namespace, name string, request *restclient.Request) (T, error) {
	object, err := do[T](ctx, request)
	if err == nil && (object.GetNamespace() != namespace || object.GetName() != name) {
		var none T
		return none, requestError{fmt.Errorf("eventclient: request for %s %s/%s returned %s/%s", resource, namespace, name, object.GetNamespace(), object.GetName())}
	}
	return object, err
}

// do sends a request and returns the object of the response. It ignores warnings, because a webhook can warn of each
// heartbeat, and has no rate limiter, because that takes 16 allocations.
func do[R runtime.Object](ctx context.Context, request *restclient.Request) (expected R, err error) {
	request = request.WarningHandler(restclient.NoWarnings{}).SetHeader("Accept", accept).MaxRetries(0).Throttle(nil)
	result := request.Do(ctx)
	var object runtime.Object
	if err = errorOf(result); err == nil {
		body, _ := result.Raw() // the content says how to read it: a proxy can change the content type
		object, err = runtime.Decode(scheme.Codecs.UniversalDeserializer(), body)
	}
	if err != nil {
		return expected, requestError{err}
	}
	expected, ok := object.(R)
	switch status, isStatus := object.(*metav1.Status); {
	case isStatus && status.Status != metav1.StatusSuccess:
		return expected, apierrors.FromObject(status)
	case !ok:
		return expected, &apierrors.UnexpectedObjectError{Object: object}
	}
	return expected, nil
}

// errorOf returns the error of a result. client-go returns the Status in the body, if there is one. It can
// lack the code, and what the Retry-After header says, which Raw returns.
func errorOf(result restclient.Result) error {
	err := result.Error()
	if err == nil {
		return nil
	}
	_, raw := result.Raw()
	var status *apierrors.StatusError
	var header apierrors.APIStatus
	if !errors.As(err, &status) || !errors.As(raw, &header) {
		return err
	}
	response := header.Status()
	status.ErrStatus.Code = cmp.Or(status.ErrStatus.Code, response.Code)
	if d := response.Details; d != nil && d.RetryAfterSeconds > 0 {
		status.ErrStatus.Details = cmp.Or(status.ErrStatus.Details, &metav1.StatusDetails{})
		status.ErrStatus.Details.RetryAfterSeconds = d.RetryAfterSeconds
	}
	return err
}

// requestError is an error that the network or the server can have caused, such as a response in HTML.
type requestError struct{ error }

func (e requestError) Unwrap() error { return e.error }

// IsRequestError reports whether err is the error of a request of a [Client].
func IsRequestError(err error) bool { return errors.As(err, new(requestError)) }
