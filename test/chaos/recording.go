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

// scrapeInterval is how often an emitter tells its metrics, where they are wanted.
// It is to the times of these recorders what a minute is to the usual ones, about.
const scrapeInterval = 2 * time.Second

// scrapes reports the metrics of a broadcaster now and then until ctx ends. They go
// through the pipe, so that those of a process that is killed are kept.
func scrapes(ctx context.Context, broadcaster *events.Broadcaster, r *reporter) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(broadcaster, metrics.Options{}))
	for {
		text, err := exposition(registry)
		if err != nil {
			r.write(report{Failed: err.Error()})
			return
		}
		r.write(report{Metrics: text})
		if !until(ctx, time.Now().Add(scrapeInterval)) {
			return
		}
	}
}

// exposition returns what a registry exposes.
func exposition(registry prometheus.Gatherer) (string, error) {
	families, err := registry.Gather()
	if err != nil {
		return "", fmt.Errorf("chaos: metrics: %w", err)
	}
	var text strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			return "", fmt.Errorf("chaos: metrics: %w", err)
		}
	}
	return text.String(), nil
}

// recording holds the metrics of all processes over a run, as a Prometheus has them
// that scrapes them: each process has an instance of its own.
type recording map[string]*dto.MetricFamily

// add takes in one scrape.
func (r recording) add(instance string, at time.Time, text string) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return fmt.Errorf("chaos: metrics of %s: %w", instance, err)
	}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			for label, value := range map[string]string{"namespace": namespace, "job": "chaos", "instance": instance} {
				m.Label = append(m.Label, &dto.LabelPair{Name: new(label), Value: new(value)})
			}
			slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
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

// write writes it as OpenMetrics. The samples of one series come together, the
// earliest first.
func (r recording) write(out io.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(r)) {
		f := r[name]
		slices.SortStableFunc(f.Metric, func(a, b *dto.Metric) int {
			for i := range min(len(a.Label), len(b.Label)) {
				if c := cmp.Compare(a.Label[i].GetValue(), b.Label[i].GetValue()); c != 0 {
					return c
				}
			}
			return cmp.Compare(a.GetTimestampMs(), b.GetTimestampMs())
		})
		if _, err := expfmt.MetricFamilyToOpenMetrics(out, f); err != nil {
			return fmt.Errorf("chaos: recording: %w", err)
		}
	}
	if _, err := expfmt.FinalizeOpenMetrics(out); err != nil {
		return fmt.Errorf("chaos: recording: %w", err)
	}
	return nil
}

// record writes the metrics of all lives to a file, compressed.
func record(path string, emissions []*emission) error {
	r := make(recording)
	for _, e := range emissions {
		for i, l := range e.lives {
			for _, line := range l.lines {
				if line.Metrics == "" {
					continue
				}
				if err := r.add(fmt.Sprintf("emitter-%d-life-%d", e.number, i), l.begin.Add(line.At), line.Metrics); err != nil {
					return err
				}
			}
		}
	}
	if len(r) == 0 {
		return errors.New("chaos: recording: there are no metrics")
	}
	var compressed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("chaos: recording: %w", err)
	}
	if err := errors.Join(r.write(zip), zip.Close()); err != nil {
		return err
	}
	return os.WriteFile(path, compressed.Bytes(), 0o666)
}
