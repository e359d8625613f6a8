package chaos

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

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
		var text strings.Builder
		for _, f := range families {
			_, formatErr := expfmt.MetricFamilyToText(&text, f)
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

// recording contains the metrics of all processes by the names of their families.
type recording map[string]*dto.MetricFamily

// add adds the metrics of a report.
func (r recording) add(at time.Time, text string) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return err
	}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			m.TimestampMs = new(at.UnixMilli())
		}
		if r[name] == nil {
			r[name] = f
		} else {
			r[name].Metric = append(r[name].Metric, f.Metric...)
		}
	}
	return nil
}

// write writes the recording as OpenMetrics, grouped by series.
func (r recording) write(out io.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(r)) {
		slices.SortStableFunc(r[name].Metric, func(a, b *dto.Metric) int {
			return slices.CompareFunc(a.Label, b.Label, func(x, y *dto.LabelPair) int { return cmp.Compare(x.GetValue(), y.GetValue()) })
		})
		if _, err := expfmt.MetricFamilyToOpenMetrics(out, r[name]); err != nil {
			return err
		}
	}
	_, err := expfmt.FinalizeOpenMetrics(out)
	return err
}

// record writes the metrics of all processes to a file, compressed by gzip.
func record(path string, supervisors []*supervisor) error {
	r := make(recording)
	for _, s := range supervisors {
		for _, p := range s.processes {
			for _, line := range p.reports {
				if line.Metrics == "" {
					continue
				}
				if err := r.add(p.begin.Add(line.At), line.Metrics); err != nil {
					return fmt.Errorf("chaos: metrics of emitter %d: %w", s.config.Emitter, err)
				}
			}
		}
	}
	if len(r) == 0 {
		return errors.New("chaos: recording: no metrics")
	}
	var compressed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err == nil {
		err = errors.Join(r.write(zip), zip.Close())
	}
	if err != nil {
		return fmt.Errorf("chaos: recording: %w", err)
	}
	return os.WriteFile(path, compressed.Bytes(), 0o666)
}
