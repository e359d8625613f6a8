package eventclient

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	restclient "k8s.io/client-go/rest"
)

// contentTypeOf returns the content type in which a typed client would send an object
// through client: the configured one, or else protobuf. client-go does not export the
// configuration of a client, so contentTypeOf has an object encoded that notes how. It
// sends no request.
func contentTypeOf(client *restclient.RESTClient) string {
	contentType := runtime.ContentTypeJSON // every server understands it
	client.Post().UseProtobufAsDefault().Body(&encodingNote{&contentType})
	return contentType
}

// encodingNote is an object that notes the content type in which it is encoded. It is in
// no scheme.
type encodingNote struct{ contentType *string }

// MarshalJSON implements [encoding/json.Marshaler].
func (n encodingNote) MarshalJSON() ([]byte, error) { return n.note(runtime.ContentTypeJSON, "{}") }

// MarshalCBOR implements the interface of github.com/fxamacker/cbor.
func (n encodingNote) MarshalCBOR() ([]byte, error) { return n.note(runtime.ContentTypeCBOR, "\xa0") }

// Marshal implements the interface of github.com/gogo/protobuf.
func (n encodingNote) Marshal() ([]byte, error) { return n.note(runtime.ContentTypeProtobuf, "") }

// note returns the encoding of an empty object.
func (n encodingNote) note(contentType, empty string) ([]byte, error) {
	*n.contentType = contentType
	return []byte(empty), nil
}

// GetObjectKind implements [runtime.Object].
func (encodingNote) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements [runtime.Object].
func (n encodingNote) DeepCopyObject() runtime.Object { return n }
