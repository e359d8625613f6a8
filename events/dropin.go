package events

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
)

// FakeRecorder writes events into a channel of strings. It is client-go's, for
// tests that have it; it blocks when the channel is full. Package eventstest has a
// recorder that does not, and that can be asked what was emitted.
type FakeRecorder = clientevents.FakeRecorder

// NewFakeRecorder returns a FakeRecorder whose channel has room for bufferSize
// events.
func NewFakeRecorder(bufferSize int) *FakeRecorder {
	return clientevents.NewFakeRecorder(bufferSize)
}

// GetFieldSelector returns the field selector for the Events about an object, as
// the given version of the Events API calls the fields. Empty parts are not
// selected by. It is client-go's. The error is that the version is not known.
func GetFieldSelector(eventsGroupVersion schema.GroupVersion, regardingGroupVersionKind schema.GroupVersionKind, regardingName string, regardingUID types.UID) (fields.Selector, error) {
	return clientevents.GetFieldSelector(eventsGroupVersion, regardingGroupVersionKind, regardingName, regardingUID)
}
