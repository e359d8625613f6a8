package monitoring

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
)

const (
	// scrapeInterval is that of a recording, as the chaos test has it.
	scrapeInterval = 2 * time.Second
	// compression is how much faster than usual everything goes in a recording. A
	// target is scraped once a minute, usually.
	compression = 30
)

// recording is what a Prometheus would have scraped of the processes of a run.
type recording struct {
	samples  samples
	from, to time.Time
}

// readRecording reads a file of OpenMetrics, compressed by gzip.
func readRecording(path string) (*recording, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("monitoring: recording: %w", err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("monitoring: recording: %w", err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		return nil, fmt.Errorf("monitoring: recording: %w", err)
	}
	r := &recording{}
	if err := r.parse(text); err != nil {
		return nil, fmt.Errorf("monitoring: recording: %w", err)
	}
	return r, nil
}

func (r *recording) parse(text []byte) error {
	parser := textparse.NewOpenMetricsParser(text, labels.NewSymbolTable())
	index := make(map[uint64]int)
	first, last := int64(0), int64(0)
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
			return fmt.Errorf("%s has no time", name)
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
			return fmt.Errorf("%s: %d comes after %d", metric, *at, s.Floats[n-1].T)
		}
		s.Floats = append(s.Floats, promql.FPoint{T: *at, F: value})
		if first == 0 || *at < first {
			first = *at
		}
		last = max(last, *at)
	}
	if len(r.samples) == 0 {
		return errors.New("no samples")
	}
	r.from, r.to = time.UnixMilli(first), time.UnixMilli(last)
	return nil
}

// engine returns an engine over the recording. A process that was killed is gone with
// the second scrape that it misses, at the latest: a Prometheus, which marks what has
// gone, would know with the first.
func (r *recording) engine() *engine { return newEngine(r.samples, 2*scrapeInterval) }
