package chaos

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/metrics"
)

// scrapeInterval is the interval between reports of metrics. The intervals of these
// recorders are about as much shorter than the defaults as it is shorter than a minute.
const scrapeInterval = 2 * time.Second

// scrape reports the metrics of a broadcaster until ctx is done. They go through the
// pipe, so those of killed processes are not lost. Labels identify the process, as
// those of a target of Prometheus do.
func scrape(ctx context.Context, broadcaster *events.Broadcaster, config emitterConfig, r *reporter) {
	registry := prometheus.NewRegistry()
	prometheus.WrapRegistererWith(prometheus.Labels{
		"namespace": namespace, "job": "chaos", "instance": config.name(),
	}, registry).MustRegister(metrics.NewCollector(broadcaster, metrics.Options{}))
	for {
		families, err := registry.Gather()
		now := time.Now().UnixMilli()
		var text strings.Builder
		for _, f := range families {
			for _, m := range f.Metric {
				m.TimestampMs = &now
			}
			_, formatErr := expfmt.MetricFamilyToOpenMetrics(&text, f)
			err = errors.Join(err, formatErr)
		}
		if err != nil {
			r.write(report{Failed: "metrics: " + err.Error()})
			return
		}
		r.write(report{Metrics: text.String()})
		if !until(ctx, time.Now().Add(scrapeInterval)) {
			return
		}
	}
}

// record writes the metrics of all processes to a file, as OpenMetrics compressed by
// gzip.
func record(path string, supervisors []*supervisor) error {
	var compressed bytes.Buffer
	zip := gzip.NewWriter(&compressed)
	found := false
	for _, s := range supervisors {
		for _, p := range s.processes {
			for _, line := range p.reports {
				found = found || line.Metrics != ""
				_, _ = io.WriteString(zip, line.Metrics) // a Buffer returns no errors
			}
		}
	}
	if !found {
		return errors.New("chaos: recording: no metrics")
	}
	_, _ = io.WriteString(zip, "# EOF\n")
	if err := zip.Close(); err != nil {
		return fmt.Errorf("chaos: recording: %w", err)
	}
	return os.WriteFile(path, compressed.Bytes(), 0o666)
}
