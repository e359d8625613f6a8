package monitoring

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
)

const (
	// scrapeInterval is the interval of recordings, which the chaos test determines.
	scrapeInterval = 2 * time.Second
	// compression is the ratio between a usual scrape interval, one minute, and
	// scrapeInterval.
	compression = 30
)

// recording contains the metrics that a Prometheus would have scraped from the
// processes of a run.
type recording struct {
	samples  samples
	from, to time.Time
}

// readRecording reads OpenMetrics from a file, compressed by gzip.
func readRecording(path string) (r *recording, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("monitoring: recording: %w", err)
		}
	}()
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		return nil, err
	}
	r = &recording{}
	return r, r.parse(text)
}

func (r *recording) parse(text []byte) error {
	parser := textparse.NewOpenMetricsParser(text, labels.NewSymbolTable())
	index := make(map[uint64]int)
	var times []int64
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		name, at, value := parser.Series()
		if at == nil {
			return fmt.Errorf("%s has no timestamp", name)
		}
		var metric labels.Labels
		parser.Labels(&metric)
		i, known := index[metric.Hash()]
		if !known {
			i = len(r.samples)
			index[metric.Hash()] = i
			r.samples = append(r.samples, promql.Series{Metric: metric})
		}
		s := &r.samples[i]
		if n := len(s.Floats); n > 0 && s.Floats[n-1].T >= *at {
			return fmt.Errorf("%s: timestamp %d follows %d", metric, *at, s.Floats[n-1].T)
		}
		s.Floats = append(s.Floats, promql.FPoint{T: *at, F: value})
		times = append(times, *at)
	}
	if len(times) == 0 {
		return errors.New("no samples")
	}
	r.from, r.to = time.UnixMilli(slices.Min(times)), time.UnixMilli(slices.Max(times))
	return nil
}

// engine returns an engine over the recording. A killed process is gone after two
// missed scrapes. A real Prometheus, which marks series as stale, needs only one.
func (r *recording) engine() *engine { return newEngine(r.samples, 2*scrapeInterval) }
