package monitoring

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	recordingFile = "testdata/chaos.om.gz"
	// scrapeInterval is the interval of that recording, which the chaos test determines.
	scrapeInterval = 2 * time.Second

	// reasonsFile is the recording of a broadcaster that counts by reason, once a minute. A test
	// of package metrics writes it.
	reasonsFile = "testdata/reasons.om"
)

// recording contains the metrics that a Prometheus would have scraped from the
// processes of a run.
type recording struct {
	*engine
	from, to time.Time
	interval time.Duration // between two scrapes
}

// recordedRun reads a recording. A killed process is gone after two missed scrapes. A
// real Prometheus, which marks series as stale, needs only one.
func recordedRun(t *testing.T) *recording {
	t.Helper()
	file, err := os.Open(recordingFile)
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(300_000))
	zip, err := gzip.NewReader(file)
	require.NoError(t, err)
	text, err := io.ReadAll(zip)
	require.NoError(t, err)
	return newRecording(t, text, scrapeInterval)
}

// recordedReasons reads the recording of a broadcaster that counts by reason.
func recordedReasons(t *testing.T) *recording {
	t.Helper()
	text, err := os.ReadFile(reasonsFile)
	require.NoError(t, err)
	return newRecording(t, text, time.Minute)
}

func newRecording(t *testing.T, text []byte, interval time.Duration) *recording {
	t.Helper()
	all, from, to, err := parse(text)
	require.NoError(t, err)
	return &recording{engine: newEngine(t, all, 2*interval), from: from, to: to, interval: interval}
}

// parse reads OpenMetrics, and returns the times of the first and the last sample.
func parse(text []byte) (all samples, from, to time.Time, err error) {
	input := textparse.NewOpenMetricsParser(text, labels.NewSymbolTable())
	index := make(map[uint64]int)
	var times []int64
	for {
		entry, err := input.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, from, to, err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		name, at, value := input.Series()
		if at == nil {
			return nil, from, to, fmt.Errorf("%s has no timestamp", name)
		}
		var metric labels.Labels
		input.Labels(&metric)
		i, known := index[metric.Hash()]
		if !known {
			i = len(all)
			index[metric.Hash()] = i
			all = append(all, promql.Series{Metric: metric})
		}
		s := &all[i]
		if n := len(s.Floats); n > 0 && s.Floats[n-1].T >= *at {
			return nil, from, to, fmt.Errorf("%s: timestamp %d follows %d", metric, *at, s.Floats[n-1].T)
		}
		s.Floats = append(s.Floats, promql.FPoint{T: *at, F: value})
		times = append(times, *at)
	}
	if len(times) == 0 {
		return nil, from, to, errors.New("no samples")
	}
	return all, time.UnixMilli(slices.Min(times)), time.UnixMilli(slices.Max(times)), nil
}

func TestParse(t *testing.T) {
	for name, text := range map[string]string{
		"empty":                "# EOF\n",
		"no timestamp":         "# TYPE a gauge\na 1\n# EOF\n",
		"truncated":            "# TYPE a gauge\na 1 1\n",
		"decreasing timestamp": "# TYPE a gauge\na 1 2\na 1 1\n# EOF\n",
		"invalid":              "{\n",
	} {
		_, _, _, err := parse([]byte(text))
		assert.Error(t, err, name)
	}
	all, from, to, err := parse([]byte("# TYPE a gauge\na{x=\"y\"} 1 1\na{x=\"y\"} 2 3\na{x=\"z\"} 2 2\n# EOF\n"))
	require.NoError(t, err)
	assert.Len(t, all, 2)
	assert.EqualValues(t, 1, from.Unix())
	assert.EqualValues(t, 3, to.Unix())
}

func TestRecordingIsComplete(t *testing.T) {
	r := recordedRun(t)
	assert.Greater(t, r.to.Sub(r.from).Seconds(), 60.0)
	instances := make(map[string]bool)
	for _, s := range r.samples {
		instances[s.Metric.Get("instance")] = true
	}
	assert.Greater(t, len(instances), 10)
}

// evaluate evaluates an expression over the recording. It replaces variables like Grafana
// does: with all values, and with intervals that fit the recording.
func (r *recording) evaluate(t *testing.T, expression string) promql.Matrix {
	t.Helper()
	resolved := os.Expand(expression, func(variable string) string {
		switch variable {
		case "__rate_interval":
			return (4 * r.interval).String() // the ratio in Grafana
		case "__range":
			return fmt.Sprintf("%.0fs", r.to.Sub(r.from).Seconds())
		default:
			return ".*"
		}
	})
	query, err := r.NewRangeQuery(t.Context(), r.samples, nil, resolved, r.from.Add(r.interval), r.to, r.interval)
	require.NoError(t, err, resolved)
	matrix, err := query.Exec(t.Context()).Matrix()
	require.NoError(t, err, resolved)
	return matrix
}

// engine evaluates expressions over samples.
type engine struct {
	*promql.Engine
	samples samples
}

var expressions = parser.NewParser(parser.Options{})

// newEngine returns an engine that considers a time series gone when it has no sample
// for lookback.
func newEngine(t *testing.T, s samples, lookback time.Duration) *engine {
	e := promql.NewEngine(promql.EngineOpts{MaxSamples: 50e6, Timeout: time.Minute, LookbackDelta: lookback, Parser: expressions})
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return &engine{Engine: e, samples: s}
}

// at evaluates an expression at a point in time.
func (e *engine) at(ctx context.Context, expression string, at time.Time) (promql.Vector, error) {
	query, err := e.NewInstantQuery(ctx, e.samples, nil, expression, at)
	if err != nil {
		return nil, err
	}
	return query.Exec(ctx).Vector()
}

// samples is a storage.Queryable of time series in memory. The samples of each series
// must be in the order of their times.
type samples []promql.Series

// Querier implements storage.Queryable. It returns all samples, of which the engine
// selects those in the range.
func (s samples) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: s.selectSeries}, nil
}

func (s samples) selectSeries(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{SeriesSet: storage.EmptySeriesSet(), at: -1}
	for _, series := range s {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.Metric.Get(m.Name)) }) {
			set.series = append(set.series, series)
		}
	}
	return set
}

// seriesSet is a storage.SeriesSet without errors and warnings, like the empty one.
type seriesSet struct {
	storage.SeriesSet
	series []promql.Series
	at     int
}

func (s *seriesSet) Next() bool         { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series { return promql.NewStorageSeries(s.series[s.at]) }
