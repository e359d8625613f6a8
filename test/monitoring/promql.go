package monitoring

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// samples are time series in memory, as a storage for a PromQL engine. The samples of
// each come in the order of their times.
type samples []promql.Series

// Querier implements storage.Queryable. All samples are there at all times: the engine
// takes those that it wants.
func (s samples) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: s.selectSeries}, nil
}

func (s samples) selectSeries(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{at: -1}
series:
	for _, series := range s {
		for _, m := range matchers {
			if !m.Matches(series.Metric.Get(m.Name)) {
				continue series
			}
		}
		set.series = append(set.series, series)
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

// newEngine returns an engine to which a time series that has no sample for as long as
// lookback does not exist. It has to be closed.
func newEngine(s samples, lookback time.Duration) *engine {
	return &engine{samples: s, Engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples:    50e6,
		Timeout:       time.Minute,
		LookbackDelta: lookback,
		Parser:        expressions,
	})}
}

var expressions = parser.NewParser(parser.Options{})

// at evaluates an expression at a time.
func (e *engine) at(ctx context.Context, expression string, at time.Time) (promql.Vector, error) {
	query, err := e.NewInstantQuery(ctx, e.samples, nil, expression, at)
	if err != nil {
		return nil, fmt.Errorf("monitoring: %s: %w", expression, err)
	}
	defer query.Close()
	vector, err := query.Exec(ctx).Vector()
	if err != nil {
		return nil, fmt.Errorf("monitoring: %s: %w", expression, err)
	}
	return vector, nil
}

// over evaluates an expression at all times of a range.
func (e *engine) over(ctx context.Context, expression string, from, to time.Time, step time.Duration) (promql.Matrix, error) {
	query, err := e.NewRangeQuery(ctx, e.samples, nil, expression, from, to, step)
	if err != nil {
		return nil, fmt.Errorf("monitoring: %s: %w", expression, err)
	}
	defer query.Close()
	matrix, err := query.Exec(ctx).Matrix()
	if err != nil {
		return nil, fmt.Errorf("monitoring: %s: %w", expression, err)
	}
	// It belongs to the query, which is closed.
	var own promql.Matrix
	for _, series := range matrix {
		own = append(own, promql.Series{Metric: series.Metric.Copy(), Floats: append([]promql.FPoint(nil), series.Floats...)})
	}
	return own, nil
}
