package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventseries/eventseries/events"
)

// Source provides the statistics of a broadcaster. It is an [*events.Broadcaster] in
// programs, and anything else in tests.
type Source interface {
	// Stats returns the current statistics. It is safe for concurrent use.
	Stats() events.Stats
}

var _ Source = (*events.Broadcaster)(nil)

// Options configure a collector. The zero value has the defaults.
type Options struct {
	// ConstLabels are labels of every metric, such as {"broadcaster": "backup"}. They
	// tell several broadcasters in one registry apart. The registration of the collector
	// fails if a label is invalid, or if a metric has a label with the same name.
	ConstLabels prometheus.Labels

	// ByReason has the metrics eventseries_occurrences_total and eventseries_ongoing_series
	// with the labels controller, type, and reason. All collectors of a registry have the same
	// value: a metric has the same labels in a registry.
	ByReason bool
}

// NewCollector returns a collector for the statistics of source, which must not be nil.
// Register it with a [prometheus.Registerer]. It is safe for concurrent use.
func NewCollector(source Source, opts Options) prometheus.Collector {
	c := &collector{source: source, families: occurrences}
	if opts.ByReason {
		c.families = byReason
	}
	c.families = slices.Concat(c.families, families)
	for i := range c.families {
		f := &c.families[i]
		c.descs = append(c.descs, prometheus.NewDesc(f.name, f.help, f.labels, opts.ConstLabels))
	}
	return c
}

// collector implements prometheus.Collector. It has no state.
type collector struct {
	source   Source
	families []family
	descs    []*prometheus.Desc // of families, in the same order
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range c.descs {
		descs <- desc
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	stats := c.source.Stats()
	for i := range c.families {
		c.families[i].read(&stats, &sender{desc: c.descs[i], metrics: metrics})
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

func (s *sender) flag(is bool) {
	value := 0.0
	if is {
		value = 1
	}
	s.gauge(value)
}

// histogram sends the durations of some requests as one histogram.
func (s *sender) histogram(of []events.RequestStats, labels ...string) {
	var count uint64
	var sum time.Duration
	buckets := make(map[float64]uint64)
	for _, r := range of {
		count += r.Count
		sum += r.Duration
		for bound, n := range r.Buckets {
			buckets[bound.Seconds()] += n
		}
	}
	s.send(prometheus.NewConstHistogram(s.desc, count, sum.Seconds(), buckets, labels...))
}

// send sends m. It sends an error to the gatherer, too, instead of panicking: a missing
// metric must not end the program.
func (s *sender) send(m prometheus.Metric, err error) {
	if err != nil {
		m = prometheus.NewInvalidMetric(s.desc, err)
	}
	s.metrics <- m
}
