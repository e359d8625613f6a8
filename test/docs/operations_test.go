package docs

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
	"github.com/eventseries/eventseries/series"
)

func TestOptions(t *testing.T) {
	opts := events.Options{
		FinishAfter: 6 * time.Minute,
		MaxWindow:   6 * time.Minute,  // a fixed window
		EventTTL:    20 * time.Minute, // kube-apiserver --event-ttl=20m
	}
	for _, valid := range []events.Options{opts, {MaxWindow: 126 * time.Minute}} {
		_, err := events.New(&eventstest.Server{}, valid)
		assert.NoError(t, err)
	}
}

func follow(ctx context.Context, configMap *corev1.ConfigMap, filter *events.Filter) {
	if err := filter.Set(configMap.Data["event-filter"]); err != nil {
		klog.FromContext(ctx).Error(err, "Kept the previous event filter", "configMap", klog.KObj(configMap))
	}
}

func TestFilter(t *testing.T) {
	flag := flag.NewFlagSet("program", flag.ContinueOnError)
	var filter events.Filter
	flag.Var(&filter, "event-filter", "which events to record, such as reason!=Synced")
	opts := events.Options{Filter: filter.Selects}

	object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(read(t, "test/docs/filter.yaml")), nil, nil)
	require.NoError(t, err)
	configMap, ok := object.(*corev1.ConfigMap)
	require.True(t, ok)
	follow(t.Context(), configMap, &filter)
	assert.Equal(t, configMap.Data["event-filter"], filter.String())
	assert.True(t, opts.Filter(series.Key{Type: "Warning"}))
	assert.False(t, opts.Filter(series.Key{Type: "Normal", Reason: "Synced"}))
	configMap.Data["event-filter"] = "no selector"
	before := filter.String()
	follow(t.Context(), configMap, &filter)
	assert.Equal(t, before, filter.String())
}
