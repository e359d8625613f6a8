package metrics

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
)

// recording is what a Prometheus would scrape from a broadcaster that counts by reason. The
// tests of docs/monitoring evaluate the dashboard and the alerts over it.
const recording = "../../test/monitoring/testdata/reasons.om"

// The recording is of 40 minutes in virtual time: a loop that goes on for 20 minutes, one that
// goes on, one that the filter excludes for a while, and a controller that makes reasons up.
func TestRecordingIsUpToDate(t *testing.T) {
	var text strings.Builder
	synctest.Test(t, func(t *testing.T) {
		var filter events.Filter
		broadcaster := events.NewBroadcasterWithOptions(&eventstest.Server{}, events.Options{Reasons: 8, Filter: &filter})
		require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
		registry := registryOf(t, broadcaster)
		recorder := broadcaster.NewRecorder(nil, "example.com/backup")
		emit := func(eventtype, reason string) {
			recorder.Eventf(podRef("db-0"), nil, eventtype, reason, "BackUp", "")
		}
		for minute := range 40 {
			if minute < 20 {
				emit(corev1.EventTypeWarning, "NoSpaceLeft")
			}
			emit(corev1.EventTypeWarning, "SnapshotFailed")
			emit(corev1.EventTypeNormal, "Synced")
			emit(corev1.EventTypeNormal, fmt.Sprintf("FailedAfter%ds", minute))
			switch minute {
			case 10:
				require.NoError(t, filter.Set("reason!=Synced"))
			case 30:
				require.NoError(t, filter.Set(""))
			}
			time.Sleep(time.Minute)
			synctest.Wait() // a series can end at this very moment
			sample(t, registry, &text)
		}
		broadcaster.Shutdown()
	})
	text.WriteString("# EOF\n")
	if *rewrite {
		require.NoError(t, os.WriteFile(recording, []byte(text.String()), 0o666))
	}
	want, err := os.ReadFile(recording)
	require.NoError(t, err)
	assert.Equal(t, string(want), text.String())
}

// sample appends the metrics that the recording of the chaos test does not have.
func sample(t *testing.T, registry *prometheus.Registry, to *strings.Builder) {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		switch family.GetName() {
		case "eventseries_occurrences_total", "eventseries_ongoing_series", "eventseries_reasons_limited", "eventseries_occurrences_filtered_total":
		default:
			continue
		}
		for _, metric := range family.GetMetric() {
			fmt.Fprintf(to, `%s{namespace="shop",job="backup",instance="backup-0"`, family.GetName())
			for _, label := range metric.GetLabel() {
				fmt.Fprintf(to, ",%s=%q", label.GetName(), label.GetValue())
			}
			fmt.Fprintf(to, "} %v %d\n", metric.GetCounter().GetValue()+metric.GetGauge().GetValue(), time.Now().Unix())
		}
	}
}
