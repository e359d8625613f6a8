package docs

import (
	"context"
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
	"github.com/eventseries/eventseries/series"
)

func TestOptionsForAShortTTL(t *testing.T) {
	opts := events.Options{
		EventTTL: 20 * time.Minute, // kube-apiserver --event-ttl=20m
	}
	assert.NoError(t, opts.Validate())
}

func TestOptionsForTheWindow(t *testing.T) {
	emit := func(opts events.Options, period time.Duration) []series.Series {
		broadcaster := eventstest.NewBroadcasterWithOptions(t, opts)
		recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/resync")
		for range 5 {
			broadcaster.Advance(period)
			recorder.Eventf(&corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "pod"}, nil, "Normal", "Synced", "Sync", "")
		}
		broadcaster.Advance(time.Minute)
		return broadcaster.Series()
	}
	opts := events.Options{
		FinishAfter: 6 * time.Minute,
		MaxWindow:   6 * time.Minute, // a fixed window
	}
	assert.Len(t, emit(opts, 7*time.Minute), 5)
	assert.Len(t, emit(events.Options{}, 7*time.Minute), 1)

	resync := emit(events.Options{MaxWindow: 126 * time.Minute}, time.Hour)
	require.Len(t, resync, 1)
	assert.Equal(t, series.Ongoing, resync[0].State)
	assert.EqualValues(t, 5, resync[0].Count)
}

// followConfigMap keeps a filter at the value of a ConfigMap until ctx ends.
func followConfigMap(ctx context.Context, clientset kubernetes.Interface, filter *events.Filter) error {
	set := func(object any) {
		configMap, ok := object.(*corev1.ConfigMap)
		if !ok || configMap.Name != "backup-controller" {
			return
		}
		if err := filter.Set(configMap.Data["event-filter"]); err != nil {
			klog.FromContext(ctx).Error(err, "Kept the previous event filter", "configMap", klog.KObj(configMap))
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithNamespace("backup-system"))
	_, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, object any) { set(object) },
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

func TestFilterFollowsAConfigMap(t *testing.T) { synctest.Test(t, testFilterFollowsAConfigMap) }

func testFilterFollowsAConfigMap(t *testing.T) {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(read(t, "test/docs/filter.yaml")), nil, nil)
	require.NoError(t, err)
	configMap, ok := object.(*corev1.ConfigMap)
	require.True(t, ok)
	clientset := fake.NewClientset(configMap)

	flag := flag.NewFlagSet("program", flag.ContinueOnError)
	var filter events.Filter
	flag.Var(&filter, "event-filter", "which events to record, such as reason!=Synced")
	broadcaster := events.NewBroadcasterWithOptions(&events.EventSinkImpl{Interface: clientset.EventsV1()}, events.Options{Filter: &filter})
	defer broadcaster.Shutdown()
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- followConfigMap(ctx, clientset, &filter) }()
	emit := func(eventtype, reason string) (recorded bool) {
		before := broadcaster.Stats().Filtered
		recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/backup-controller")
		recorder.Eventf(configMap, nil, eventtype, reason, "Sync", "")
		return broadcaster.Stats().Filtered == before
	}
	synctest.Wait()
	assert.True(t, emit("Warning", "Synced"))
	assert.True(t, emit("Normal", "SnapshotTaken"))
	assert.False(t, emit("Normal", "Pruned"))

	configMap = configMap.DeepCopy()
	configMap.Data["event-filter"] = "type=Warning"
	_, err = clientset.CoreV1().ConfigMaps("backup-system").Update(ctx, configMap, metav1.UpdateOptions{})
	require.NoError(t, err)
	synctest.Wait()
	assert.False(t, emit("Normal", "SnapshotTaken"))
	cancel()
	require.NoError(t, <-done)
}
