package docs

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/events"
)

func reportFailedSnapshot(ctx context.Context, clientset kubernetes.Interface, scheme *runtime.Scheme, backup *batchv1.Job, volume *corev1.PersistentVolumeClaim, err error) error {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	defer broadcaster.Shutdown() // writes the remaining counts

	recorder := broadcaster.NewRecorder(scheme, "example.com/backup-controller")
	recorder.Eventf(backup, volume, corev1.EventTypeWarning, "SnapshotFailed", "Snapshotting",
		"snapshot of %s failed: %v", volume.Name, err)
	return nil
}

func TestReadme(t *testing.T) {
	clientset := fake.NewClientset()
	require.NoError(t, reportFailedSnapshot(t.Context(), clientset, clientgoscheme.Scheme, job, volume, errors.New("no space")))
	list := written(t, clientset)
	require.Len(t, list, 1)
	assert.Equal(t, "snapshot of data-0 failed: no space", list[0].Note)
	assert.Equal(t, "data-0", list[0].Related.Name)
}
