package compat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/events"
)

func TestWithDefaults(t *testing.T) {
	const minute = time.Minute
	for _, tt := range []struct{ options, want events.Options }{
		{events.Options{}, events.Options{HeartbeatInterval: 5 * minute, FirstHeartbeat: time.Second}},
		{events.Options{EventTTL: 24 * time.Hour}, events.Options{HeartbeatInterval: 5 * minute, FirstHeartbeat: time.Second}},
		{events.Options{EventTTL: 4 * minute}, events.Options{HeartbeatInterval: 2 * minute, FirstHeartbeat: time.Second}},
		{events.Options{EventTTL: time.Second}, events.Options{HeartbeatInterval: time.Second / 2, FirstHeartbeat: time.Second / 2}},
		{events.Options{HeartbeatInterval: 20 * minute}, events.Options{HeartbeatInterval: 20 * minute, FirstHeartbeat: time.Second}},
		{events.Options{FirstHeartbeat: 10 * minute}, events.Options{HeartbeatInterval: 10 * minute, FirstHeartbeat: 10 * minute}},
	} {
		want := tt.want
		want.EventTTL, want.ClusterNamespace, want.List = tt.options.EventTTL, "default", ptr.To(false)
		got := WithDefaults(tt.options)
		assert.Equal(t, want, got)
		assert.Equal(t, got, WithDefaults(got), "of its result")
		_, err := events.New(NewSink(fake.NewClientset()), got)
		require.NoError(t, err)
	}
	given := events.Options{ClusterNamespace: "kube-system", List: ptr.To(true), HeartbeatInterval: minute, FirstHeartbeat: minute}
	assert.Equal(t, given, WithDefaults(given))
}
