package chaos

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/metrics"
)

// report is a line on the standard output of an emitter. At is the time since its
// start. Other fields are set as documented.
type report struct {
	At time.Duration `json:"at"`
	// Batch is a batch that the emitter is about to emit, with the number Seq.
	Batch []burst `json:"batch,omitempty"`
	// Done means that batch Seq has been emitted.
	Done bool `json:"done,omitempty"`
	// Flushed means that all batches up to Seq are on the server.
	Flushed bool `json:"flushed,omitempty"`
	Seq     int  `json:"seq,omitempty"`
	// Sent is a write that the emitter is about to send. Acked is an acknowledged write.
	Sent  *addition `json:"sent,omitempty"`
	Acked *addition `json:"acked,omitempty"`
	// Dropped is a call of events.Options.OnDrop.
	Dropped *loss             `json:"dropped,omitempty"`
	Stats   map[string]uint64 `json:"stats,omitempty"`
	// Metrics are metrics in the text format of Prometheus.
	Metrics string `json:"metrics,omitempty"`
	// Failed is an unexpected failure.
	Failed string `json:"failed,omitempty"`
	// Ended is the last line, after a shutdown.
	Ended bool `json:"ended,omitempty"`
}

// addition is the total that a process has added to the count of an Event.
type addition struct {
	Key   int    `json:"key"`
	Event string `json:"event"`
	Count int64  `json:"count"`
}

type loss struct {
	Key    int               `json:"key"`
	Count  int               `json:"count"`
	Reason events.DropReason `json:"reason"`
}

func statsOf(s events.Stats) map[string]uint64 {
	stats := map[string]uint64{
		"occurrences": s.Occurrences, "series adopted by name": s.Adopted, "series restored by list": s.Restored,
	}
	for reason, n := range s.Dropped {
		stats[droppedPrefix+string(reason)] += n
	}
	for key, n := range s.Writes {
		stats["requests"] += n
		stats["requests, "+key.Outcome+" "+key.Kind] += n
	}
	return stats
}

const droppedPrefix = "dropped, "

// reporter writes reports. It is safe for concurrent use.
type reporter struct {
	begin time.Time

	mu  sync.Mutex
	out io.Writer
}

// write returns when the report is in the pipe, where it survives this process. It
// exits if there is no reader.
func (r *reporter) write(line report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line.At = time.Since(r.begin)
	data, err := json.Marshal(line)
	if err != nil {
		panic(err) // all fields can be marshaled
	}
	if _, err := r.out.Write(append(data, '\n')); err != nil {
		exitOrphaned()
	}
}

// readReports calls f for each report until the emitter exits. It ignores an
// incomplete last line: the emitter did not do what the line announces.
func readReports(r io.Reader, f func(report)) error {
	lines := bufio.NewReader(r)
	for {
		data, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("chaos: read reports: %w", err)
		}
		var line report
		if err := json.Unmarshal(data, &line); err != nil {
			return fmt.Errorf("chaos: report %q: %w", data, err)
		}
		f(line)
	}
}

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

type listingSink interface {
	events.EventSink
	events.EventLister
}

// accountingSink reports what a recorder sends and what the server acknowledges.
// Together they bound what a killed process has written.
//
// It reports what the process has added to an Event: the sent count minus the count
// that the process found on the server.
type accountingSink struct {
	listingSink
	reports *reporter

	mu    sync.Mutex
	found map[string]*foundEvent // by name
}

type foundEvent struct {
	created metav1.MicroTime // eventTime, if the process has tried to create it
	touched bool             // whether the process has sent a count
	base    int64            // the count that the process found
}

func newAccountingSink(sink listingSink, reports *reporter) *accountingSink {
	return &accountingSink{listingSink: sink, reports: reports, found: make(map[string]*foundEvent)}
}

func (s *accountingSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.mu.Lock()
	s.of(event).created = event.EventTime
	s.mu.Unlock()
	return s.write(event, int64(occurrences(event)), func() (*eventsv1.Event, error) { return s.listingSink.Create(ctx, event) })
}

func (s *accountingSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	var patch struct {
		Series *eventsv1.EventSeries `json:"series"`
	}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	do := func() (*eventsv1.Event, error) { return s.listingSink.Patch(ctx, event, data) }
	if patch.Series == nil {
		answer, err := do()
		if err == nil {
			s.look(answer)
		}
		return answer, err
	}
	s.mu.Lock()
	known := s.of(event)
	known.touched = true
	added := int64(patch.Series.Count) - known.base
	s.mu.Unlock()
	return s.write(event, added, do)
}

func (s *accountingSink) write(event *eventsv1.Event, added int64, do func() (*eventsv1.Event, error)) (*eventsv1.Event, error) {
	_, key, ok := parseSubject(event.Regarding.Name)
	if !ok {
		key = -1
	}
	line := &addition{Key: key, Event: event.Name, Count: added}
	s.reports.write(report{Sent: line})
	answer, err := do()
	if err == nil {
		s.reports.write(report{Acked: line})
	}
	return answer, err
}

func (s *accountingSink) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	list, err := s.listingSink.List(ctx, namespace, opts)
	if err == nil {
		for i := range list.Items {
			s.look(&list.Items[i])
		}
	}
	return list, err
}

func (s *accountingSink) look(event *eventsv1.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.of(event)
	// The count of its own Event is no base, even if the process missed the answer.
	if !known.touched && !known.created.Equal(&event.EventTime) {
		known.base = max(known.base, int64(occurrences(event)))
	}
}

// of returns what is known about an Event. The caller holds the lock.
func (s *accountingSink) of(event *eventsv1.Event) *foundEvent {
	known := s.found[event.Name]
	if known == nil {
		known = &foundEvent{}
		s.found[event.Name] = known
	}
	return known
}
