package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventseries/eventseries/events"
)

// Source is what has the statistics of a broadcaster: an *events.Broadcaster. Its
// method must allow concurrent calls.
type Source interface {
	// Stats returns the statistics of now.
	Stats() events.Stats
}

var _ Source = (*events.Broadcaster)(nil)

// Options of a collector. The zero value is the default.
type Options struct {
	// ConstLabels are put on every metric. They tell several broadcasters in one
	// registry apart: {"controller": "backup"}. If nil, there are none. Names of labels
	// that the metrics have themselves, and invalid ones, make the registration fail.
	ConstLabels prometheus.Labels
}

// NewCollector returns a collector of the statistics of source, which must not be nil.
// The collector may be used concurrently.
func NewCollector(source Source, opts Options) prometheus.Collector {
	c := &collector{source: source}
	for i := range families {
		f := &families[i]
		c.descs = append(c.descs, prometheus.NewDesc(f.name, f.help, f.labels, opts.ConstLabels))
	}
	return c
}

// collector is a prometheus.Collector. It keeps nothing but descriptions.
type collector struct {
	source Source
	descs  []*prometheus.Desc // of families, in their order
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range c.descs {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	stats := c.source.Stats()
	for i := range families {
		families[i].read(&stats, &sender{desc: c.descs[i], metrics: metrics})
	}
}

// sender sends the metrics of one family.
type sender struct {
	desc    *prometheus.Desc
	metrics chan<- prometheus.Metric
}

func (s *sender) counter(value float64, labels ...string) {
	s.send(prometheus.NewConstMetric(s.desc, prometheus.CounterValue, value, labels...))
}

func (s *sender) gauge(value float64, labels ...string) {
	s.send(prometheus.NewConstMetric(s.desc, prometheus.GaugeValue, value, labels...))
}

func (s *sender) histogram(h events.Histogram, labels ...string) {
	buckets := make(map[float64]uint64, len(h.Buckets))
	for _, b := range h.Buckets {
		buckets[b.Bound.Seconds()] = b.Count
	}
	s.send(prometheus.NewConstHistogram(s.desc, h.Count, h.Sum.Seconds(), buckets, labels...))
}

// send sends m. An error is sent instead, for whoever gathers: a program that goes on
// without a metric is better than one that ends because of it.
func (s *sender) send(m prometheus.Metric, err error) {
	if err != nil {
		m = prometheus.NewInvalidMetric(s.desc, err)
	}
	s.metrics <- m
}
