package events

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestGetFieldSelector(t *testing.T) {
	selector, err := GetFieldSelector(eventsv1.SchemeGroupVersion, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "a", "uid-1")
	require.NoError(t, err)
	for field, want := range map[string]string{
		"regarding.apiVersion": "v1", "regarding.kind": "Pod", "regarding.name": "a", "regarding.uid": "uid-1",
	} {
		got, found := selector.RequiresExactMatch(field)
		assert.True(t, found, field)
		assert.Equal(t, want, got)
	}
	_, err = GetFieldSelector(schema.GroupVersion{Group: "example.com", Version: "v1"}, schema.GroupVersionKind{}, "a", "")
	assert.ErrorContains(t, err, "example.com/v1")
}

func TestFakeRecorder(t *testing.T) {
	recorder := NewFakeRecorder(1)
	var _ EventRecorderLogger = recorder
	recorder.Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note %d", 1)
	assert.Equal(t, "Normal Tested note 1", <-recorder.Events)
}
