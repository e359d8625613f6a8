package monitoring

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// samples is a storage.Queryable of time series in memory. The samples of each series
// must be in the order of their times.
type samples []promql.Series

// Querier implements storage.Queryable. It returns all samples, of which the engine
// selects those in the range.
func (s samples) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: s.selectSeries}, nil
}

func (s samples) selectSeries(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{at: -1}
	for _, series := range s {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.Metric.Get(m.Name)) }) {
			set.series = append(set.series, series)
		}
	}
	return set
}

// seriesSet is a storage.SeriesSet.
type seriesSet struct {
	series []promql.Series
	at     int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series                { return promql.NewStorageSeries(s.series[s.at]) }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// engine evaluates expressions over samples.
type engine struct {
	*promql.Engine
	samples samples
}

// newEngine returns an engine that considers a time series gone when it has no sample
// for lookback. The caller must close the engine.
func newEngine(s samples, lookback time.Duration) *engine {
	return &engine{samples: s, Engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples:    50e6,
		Timeout:       time.Minute,
		LookbackDelta: lookback,
		Parser:        expressions,
	})}
}

var expressions = parser.NewParser(parser.Options{})

// at evaluates an expression at a point in time.
func (e *engine) at(ctx context.Context, expression string, at time.Time) (promql.Vector, error) {
	query, err := e.NewInstantQuery(ctx, e.samples, nil, expression, at)
	if err != nil {
		return nil, fmt.Errorf("monitoring: %s: %w", expression, err)
	}
	return query.Exec(ctx).Vector()
}

// over evaluates an expression over a range of time.
func (e *engine) over(ctx context.Context, expression string, from, to time.Time, step time.Duration) (promql.Matrix, error) {
	query, err := e.NewRangeQuery(ctx, e.samples, nil, expression, from, to, step)
	if err != nil {
		return nil, fmt.Errorf("monitoring: %s: %w", expression, err)
	}
	return query.Exec(ctx).Matrix()
}
