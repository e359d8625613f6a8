package docs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

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
