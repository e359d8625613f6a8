package eventclient

import (
	"context"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// List returns the Events in a namespace that match opts. An empty namespace selects all
// namespaces.
func (c *Client[T, L]) List(ctx context.Context, namespace string, opts metav1.ListOptions) (L, error) {
	var none L
	request := quiet(c.client.Get()).Namespace(namespace).Resource(resource).VersionedParams(&opts, scheme.ParameterCodec)
	body, err := request.MaxRetries(0).Throttle(nil).Stream(ctx)
	if err != nil {
		return none, err
	}
	defer func() { _ = body.Close() }() // all that matters has been read
	object, err := decode(body)
	if err != nil {
		return none, err
	}
	return expect[L](object)
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
