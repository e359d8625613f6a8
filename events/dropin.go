package events

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
)

// FakeRecorder is client-go's recorder for tests. It sends events to a channel of
// strings, and blocks if the channel is full. For new tests, use the recorder of
// package eventstest: it does not block, and keeps all fields of an event.
type FakeRecorder = clientevents.FakeRecorder

// NewFakeRecorder returns a FakeRecorder with a channel of the given capacity.
func NewFakeRecorder(bufferSize int) *FakeRecorder {
	return clientevents.NewFakeRecorder(bufferSize)
}

// GetFieldSelector is client-go's function. It returns the field selector for the
// Events about an object, with the field names of the given version of the Events
// API. It does not select by empty arguments. It returns an error if the version is
// unknown.
func GetFieldSelector(eventsGroupVersion schema.GroupVersion, regardingGroupVersionKind schema.GroupVersionKind, regardingName string, regardingUID types.UID) (fields.Selector, error) {
	return clientevents.GetFieldSelector(eventsGroupVersion, regardingGroupVersionKind, regardingName, regardingUID)
}
