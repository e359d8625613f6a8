package recorders

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/eventseries/eventseries/events"
)

// stub is a manager that has already run.
type stub struct {
	manager.Manager
	recorder record.EventRecorder
}

func (stub) Start(context.Context) error { return nil }

func (s stub) GetEventRecorderFor(string) record.EventRecorder { return s.recorder }

func TestCounts(t *testing.T) {
	to, file := record.NewFakeRecorder(2), filepath.Join(t.TempDir(), "counts.json")
	stopped := false
	m := &counting{Manager: stub{recorder: to}, counter: NewCounter(), file: file, stop: func() { stopped = true }}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	recorder := m.GetEventRecorderFor("test")
	recorder.Event(pod, "Warning", "Failed", "100%")
	recorder.AnnotatedEventf(pod, nil, "Warning", "Failed", "%d %%", 100)
	require.NoError(t, m.Start(t.Context()))
	assert.True(t, stopped)
	assert.Len(t, to.Events, 2, "the recorder must pass them on")
	assert.Equal(t, "Warning Failed 100%", <-to.Events)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var counts []Count
	require.NoError(t, json.Unmarshal(content, &counts))
	assert.Equal(t, []Count{{"web", "Warning", "Failed", 2}}, counts)
}

// The kubelet passes references, and a logger with most events.
func TestCounter(t *testing.T) {
	to, file := record.NewFakeRecorder(3), filepath.Join(t.TempDir(), "counts.json")
	counter := NewCounter()
	recorder := counter.Recorder(to)
	pod := &corev1.ObjectReference{Kind: "Pod", Name: "web"}
	recorder.Eventf(pod, "Warning", "BackOff", "back-off")
	recorder.WithLogger(klog.Background()).Eventf(pod, "Warning", "BackOff", "back-off")
	counter.Close()
	recorder.Eventf(pod, "Warning", "BackOff", "back-off")
	require.NoError(t, counter.Write(file))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.JSONEq(t, `[{"Name":"web","Type":"Warning","Reason":"BackOff","Count":2}]`, string(content))
	assert.Len(t, to.Events, 2, "the recorder must not pass on what it does not count")
}

func TestScale(t *testing.T) {
	c := Config{Scale: 10}
	assert.Equal(t, record.CorrelatorOptions{MaxIntervalInSeconds: 60, QPS: float32(1. / 30)}, c.Correlator())
	o := events.Options{FirstHeartbeat: time.Second}
	c.ScaleOptions(&o)
	assert.Equal(t, events.Options{
		EventTTL: 6 * time.Minute, FinishAfter: 36 * time.Second, MaxWindow: 216 * time.Second, FirstHeartbeat: 100 * time.Millisecond, QPS: 500,
	}, o)
}

func TestNewManager(t *testing.T) {
	options := manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
	for _, recorder := range []string{ToolsRecord, ToolsEvents, Eventseries, Import} {
		m, err := newManager(Config{Recorder: recorder, Scale: 6}, new(rest.Config), options)
		require.NoError(t, err, recorder)
		assert.NotNil(t, m.GetEventRecorderFor("test"), recorder)
	}
	_, err := newManager(Config{Recorder: "none"}, new(rest.Config), options)
	assert.ErrorContains(t, err, `no recorder "none"`)
}
