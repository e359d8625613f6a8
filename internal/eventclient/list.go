package eventclient

import (
	"bufio"
	"context"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/internal/listdecoder"
)

// List returns the Events in a namespace that match opts. An empty namespace selects all
// namespaces.
func (c *Client[T, L]) List(ctx context.Context, namespace string, opts metav1.ListOptions) (L, error) {
	return c.ListEach(ctx, namespace, opts, nil)
}

// ListEach is List for Events, except that it may pass them to receive while it reads the
// response, instead of returning them. See [listdecoder.Decode]. If receive is nil, ListEach
// returns all of them.
func (c *Client[T, L]) ListEach(ctx context.Context, namespace string, opts metav1.ListOptions, receive listdecoder.Receiver) (L, error) {
	var none L
	request := c.quiet(c.json.Get()).Namespace(namespace).Resource(resource).VersionedParams(&opts, scheme.ParameterCodec).SetHeader("Accept", accept)
	body, err := request.MaxRetries(0).Throttle(nil).Stream(ctx)
	if err != nil {
		return none, err
	}
	defer func() { _ = body.Close() }() // all that matters has been read
	reader := bufio.NewReader(body)
	received, ok, err := listdecoder.Decode(reader, c.gv, receive)
	if err != nil {
		return none, err
	}
	var object runtime.Object
	if ok {
		object, err = scheme.Scheme.New(c.gv.WithKind("EventList"))
	} else {
		object, err = decode(reader)
	}
	if err != nil {
		return none, err
	}
	list, err := expect[L](object)
	if ok && err == nil {
		list.SetContinue(received.Continue)
		list.SetResourceVersion(received.ResourceVersion)
		list.SetRemainingItemCount(received.RemainingItemCount)
	}
	return list, err
}

// decode decodes a response in JSON or protobuf. A status that is no success is an error.
func decode(body io.Reader) (runtime.Object, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), data)
	if err != nil {
		return nil, err
	}
	if status, ok := object.(*metav1.Status); ok && status.Status != metav1.StatusSuccess {
		return nil, apierrors.FromObject(status)
	}
	return object, nil
}
