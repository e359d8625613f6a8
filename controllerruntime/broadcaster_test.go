package controllerruntime

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The broadcaster has the options and the metrics, and sends its requests with the client.
func TestNewBroadcaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := make(chan string, 10)
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			requests <- r.Method + " " + r.URL.Path
			return &http.Response{
				StatusCode: http.StatusForbidden, Body: http.NoBody, Request: r,
			}, nil
		})}
		registry := prometheus.NewRegistry()
		named := func(name string) prometheus.Registerer {
			return prometheus.WrapRegistererWith(prometheus.Labels{"broadcaster": name}, registry)
		}
		options := BroadcasterOptions{Events: events.Options{Capacity: 7}, HTTPClient: client, Registerer: named("first")}
		broadcaster, err := NewBroadcaster(&rest.Config{Host: "https://cluster.invalid"}, options)
		require.NoError(t, err)
		require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-7"}}
		broadcaster.NewRecorder(scheme.Scheme, "backup").Eventf(node, nil, "Normal", "NodeDrained", "Drain", "note")
		assert.Equal(t, "POST /api/v1/namespaces/default/events", <-requests)
		families, err := registry.Gather()
		require.NoError(t, err)
		capacity := 0.0
		for _, f := range families {
			if f.GetName() == "eventseries_series_capacity" {
				capacity = f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		assert.InDelta(t, 7, capacity, 0)

		_, err = NewBroadcaster(&rest.Config{}, options)
		assert.ErrorContains(t, err, "register the metrics")
		assert.Panics(t, func() { NewBroadcasterOrDie(&rest.Config{}, options) })
		assert.ErrorContains(t, err, "prometheus.WrapRegistererWith")
		options.Registerer = named("second")
		second := NewBroadcasterOrDie(&rest.Config{}, options)
		broadcaster.Shutdown()
		for range 3 { // as a program that makes its manager again
			options.Registerer = named("first")
			NewBroadcasterOrDie(&rest.Config{}, options).Shutdown()
		}
		_, err = NewBroadcaster(&rest.Config{}, BroadcasterOptions{Registerer: named("second")})
		require.Error(t, err, "the second one still has its metrics")
		second.Shutdown()
		families, err = registry.Gather()
		require.NoError(t, err)
		assert.Empty(t, families)
	})
}

// A broadcaster with options is as fresh as that of a manager without one, and as those of compat.
func TestDefaults(t *testing.T) {
	got, want := withDefaults(events.Options{EventTTL: 4 * time.Minute}), compat.WithDefaults(events.Options{EventTTL: 4 * time.Minute})
	assert.Nil(t, got.List, "a manager lists")
	want.List = nil
	assert.Equal(t, want, got)
}

func TestNewBroadcasterOfAnInvalidConfig(t *testing.T) {
	_, err := NewBroadcaster(nil, BroadcasterOptions{})
	assert.ErrorContains(t, err, "config is nil")
	_, err = NewBroadcaster(&rest.Config{Host: "https://cluster.invalid:port"}, BroadcasterOptions{})
	assert.ErrorContains(t, err, "create a client")
	_, err = NewBroadcaster(&rest.Config{}, BroadcasterOptions{Events: events.Options{Capacity: -1}})
	assert.ErrorContains(t, err, "Capacity is negative: -1")
}
