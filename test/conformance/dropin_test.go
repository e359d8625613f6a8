package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	eventsv1beta1 "k8s.io/api/events/v1beta1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	eventseries "github.com/eventseries/eventseries/events"
)

// Selectors for the Events about an object, in each version of the API.
func TestGetFieldSelector(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for name, tt := range map[string]struct {
		version schema.GroupVersion
		kind    schema.GroupVersionKind
		name    string
		uid     types.UID
		want    string
	}{
		"v1":      {eventsv1.SchemeGroupVersion, deployment, "web", "uid-1", "regarding.apiVersion=apps/v1,regarding.kind=Deployment,regarding.name=web,regarding.uid=uid-1"},
		"v1beta1": {eventsv1beta1.SchemeGroupVersion, deployment, "web", "uid-1", "regarding.apiVersion=apps/v1,regarding.kind=Deployment,regarding.name=web,regarding.uid=uid-1"},
		"core": {corev1.SchemeGroupVersion, deployment, "web", "uid-1",
			"involvedObject.apiVersion=apps/v1,involvedObject.kind=Deployment,involvedObject.name=web,involvedObject.uid=uid-1"},
		"v1 of nothing":      {version: eventsv1.SchemeGroupVersion},
		"v1beta1 of nothing": {version: eventsv1beta1.SchemeGroupVersion},
		"core of nothing":    {version: corev1.SchemeGroupVersion},
	} {
		t.Run(name, func(t *testing.T) {
			selector, err := eventseries.GetFieldSelector(tt.version, tt.kind, tt.name, tt.uid)
			require.NoError(t, err)
			want, err := fields.ParseSelector(tt.want)
			require.NoError(t, err)
			assert.ElementsMatch(t, want.Requirements(), selector.Requirements())
		})
	}
	selector, err := eventseries.GetFieldSelector(schema.GroupVersion{Version: "v1alpha1"}, deployment, "web", "uid-1")
	require.Error(t, err)
	assert.Nil(t, selector)
}

// A FakeRecorder says in a line what was emitted, in more words if it is verbose.
func TestFakeRecorder(t *testing.T) {
	annotations := map[string]string{"a": "b"}
	about := pod("a")
	for verbose, want := range map[bool][]string{
		false: {"Normal Tested note 1", "Warning Failed note 2"},
		true: {
			"Normal Tested Testing note 1 {kind=Pod,apiVersion=v1}",
			"Warning Failed Testing note 2 {kind=Pod,apiVersion=v1} {kind=Pod,apiVersion=v1} map[a:b]",
		},
	} {
		recorder := eventseries.NewFakeRecorder(2)
		recorder.Verbose = verbose
		recorder.WithLogger(klog.Background()).Eventf(about, nil, "Normal", "Tested", "Testing", "note %d", 1)
		recorder.AnnotatedEventf(about, about, annotations, "Warning", "Failed", "Testing", "note %d", 2)
		assert.Equal(t, want, []string{<-recorder.Events, <-recorder.Events})
	}
	(&eventseries.FakeRecorder{}).Eventf(about, nil, "Normal", "Tested", "Testing", "nobody listens")
}
