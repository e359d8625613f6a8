package direct

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// noThrottle lets every request pass.
var noThrottle = flowcontrol.NewFakeAlwaysRateLimiter()

// Object is an object of a resource.
type Object interface {
	runtime.Object
	metav1.Object
}

// Resource makes requests for one namespaced resource whose objects are T and
// whose lists are L. Make one with NewResource. It may be used concurrently.
type Resource[T Object, L runtime.Object] struct {
	client restclient.Interface
	name   string
}

// NewResource returns a Resource that talks to the server of client about the
// resource of that name, such as "events", in the group version that client is
// for. It returns nil if there is no client: a fake clientset returns a nil
// pointer in an interface that is not nil.
func NewResource[T Object, L runtime.Object](client restclient.Interface, gv schema.GroupVersion, name string) *Resource[T, L] {
	if rest, ok := client.(*restclient.RESTClient); ok {
		if rest == nil {
			return nil
		}
		client = own(rest, gv)
	}
	if client == nil {
		return nil
	}
	return &Resource[T, L]{client: client, name: name}
}

// Create creates object, which must have a name, in a namespace and returns what
// the server made of it.
func (r *Resource[T, L]) Create(ctx context.Context, namespace string, object T) (T, error) {
	return r.object(ctx, namespace, object.GetName(), r.client.Post().Namespace(namespace).Resource(r.name).Body(object))
}

// Update replaces an object and returns what the server made of it.
func (r *Resource[T, L]) Update(ctx context.Context, namespace, name string, object T) (T, error) {
	return r.object(ctx, namespace, name, r.client.Put().Namespace(namespace).Resource(r.name).Name(name).Body(object))
}

// Patch applies a JSON merge patch (RFC 7386) to an object and returns what the
// server made of it.
func (r *Resource[T, L]) Patch(ctx context.Context, namespace, name string, data []byte) (T, error) {
	return r.object(ctx, namespace, name, r.client.Patch(types.MergePatchType).Namespace(namespace).Resource(r.name).Name(name).Body(data))
}

// List returns the objects of a namespace, or of all if that is empty, that opts
// selects.
func (r *Resource[T, L]) List(ctx context.Context, namespace string, opts metav1.ListOptions) (L, error) {
	return do[L](ctx, r.client.Get().Namespace(namespace).Resource(r.name).VersionedParams(&opts, scheme.ParameterCodec))
}

// object makes a request about one object and returns the one that is the answer.
func (r *Resource[T, L]) object(ctx context.Context, namespace, name string, request *restclient.Request) (T, error) {
	answer, err := do[T](ctx, request)
	// Something between here and the server can mix answers up. Nobody knows then
	// what became of the request.
	if err == nil && (answer.GetNamespace() != namespace || answer.GetName() != name) {
		var none T
		return none, fmt.Errorf("direct: asked about %s %s/%s, got an answer about %s/%s", r.name, namespace, name, answer.GetNamespace(), answer.GetName())
	}
	return answer, err
}

// own returns a client that talks to the same server with the same credentials
// and connections, but waits for no rate limiter and understands every
// Retry-After.
func own(client *restclient.RESTClient, gv schema.GroupVersion) restclient.Interface {
	httpClient := http.Client{}
	if client.Client != nil {
		httpClient = *client.Client
	}
	transport := httpClient.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	httpClient.Transport = retryAfterSeconds{transport}
	c, err := restclient.NewRESTClient(client.Get().URL(), "", restclient.ClientContentConfig{
		AcceptContentTypes: runtime.ContentTypeJSON,
		ContentType:        runtime.ContentTypeJSON,
		GroupVersion:       gv,
		Negotiator:         runtime.NewClientNegotiator(scheme.Codecs.WithoutConversion(), gv),
	}, noThrottle, &httpClient)
	if err != nil {
		return client // it works as well, if less well
	}
	return c
}

func do[T runtime.Object](ctx context.Context, request *restclient.Request) (T, error) {
	var none T
	// Not Into, which takes an answer that is another object for success.
	object, err := request.MaxRetries(0).Throttle(noThrottle).Do(ctx).Get()
	if err != nil {
		return none, err
	}
	answer, ok := object.(T)
	if !ok {
		return none, &apierrors.UnexpectedObjectError{Object: object}
	}
	return answer, nil
}
