package controllerruntime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/eventseries/eventseries/compat/record"
	"github.com/eventseries/eventseries/controllerruntime"
	"github.com/eventseries/eventseries/events"
)

var unusedConfig = &rest.Config{Host: "https://not.used.in.this.test"}

// The pages quote these tests.

func TestManagerInOneLine(t *testing.T) {
	config := unusedConfig
	mgr, err := controllerruntime.NewManager(config, ctrl.Options{}, nil) // was ctrl.NewManager
	require.NoError(t, err)
	assert.NotNil(t, mgr)
}

func TestManagerWithABroadcaster(t *testing.T) {
	config, clientset := unusedConfig, fake.NewClientset()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	mgr, err := controllerruntime.NewManager(config, ctrl.Options{}, broadcaster)
	require.NoError(t, err)
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	mgr.GetEventRecorder("backup-controller").Eventf(&corev1.Node{}, nil, "Normal", "Tested", "Testing", "note")
	broadcaster.Shutdown()
	assert.EqualValues(t, 1, broadcaster.Stats().Occurrences)
	assert.Empty(t, broadcaster.Stats().Dropped)
}

func TestManagerOfControllerRuntime(t *testing.T) {
	config := unusedConfig
	mgr, err := ctrl.NewManager(config, ctrl.Options{})
	require.NoError(t, err)
	assert.NotNil(t, mgr)
}

// Before controller-runtime v0.23, there is no other option.
//
//nolint:staticcheck // tested here
func TestLegacyRecordersOfAManager(t *testing.T) {
	config := unusedConfig
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown() // when mgr.Start has returned
	mgr, err := ctrl.NewManager(config, ctrl.Options{EventBroadcaster: broadcaster})
	require.NoError(t, err)
	assert.NotNil(t, mgr)
}

//nolint:staticcheck // programs use EventBroadcaster
func TestManagerWithABroadcasterOfItsOwn(t *testing.T) {
	config := unusedConfig
	broadcaster := record.NewBroadcaster() // of compat/record
	mgr, err := controllerruntime.NewManager(config, ctrl.Options{EventBroadcaster: broadcaster}, nil)
	require.NoError(t, err)
	mgr.GetEventRecorder("backup-controller").Eventf(&corev1.Node{}, nil, "Normal", "Tested", "Testing", "note")
	assert.EqualValues(t, 1, broadcaster.(*record.Broadcaster).Events().Stats().Occurrences)
}

func TestRecorderBesideTheManager(t *testing.T) {
	clientset := fake.NewClientset()
	mgr, err := ctrl.NewManager(unusedConfig, ctrl.Options{})
	require.NoError(t, err)
	var reconciler struct{ Recorder events.EventRecorder }

	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	defer broadcaster.Shutdown()
	reconciler.Recorder = broadcaster.NewRecorder(mgr.GetScheme(), "backup-controller")
	reconciler.Recorder.Eventf(&corev1.Node{}, nil, "Normal", "Tested", "Testing", "note")
	assert.EqualValues(t, 1, broadcaster.Stats().Occurrences)
}
