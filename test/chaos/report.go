package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/eventseries/eventseries/events"
)

// report is one line that an emitter writes: one of the following. At is when,
// since its start.
type report struct {
	At time.Duration `json:"at"`
	// Batch is what it is about to emit, under the number Seq.
	Batch []burst `json:"batch,omitempty"`
	// Done says that the batch Seq has been emitted.
	Done bool `json:"done,omitempty"`
	// Flushed says that all batches up to Seq are on the server.
	Flushed bool `json:"flushed,omitempty"`
	Seq     int  `json:"seq,omitempty"`
	// Sent is what it is about to have written, Acked what the server has written.
	Sent  *addition `json:"sent,omitempty"`
	Acked *addition `json:"acked,omitempty"`
	// Dropped is a loss that was offered to Options.OnDrop.
	Dropped *loss `json:"dropped,omitempty"`
	// Stats are the recorder's.
	Stats *stats `json:"stats,omitempty"`
	// Metrics are those of the recorder, as Prometheus would be told.
	Metrics string `json:"metrics,omitempty"`
	// Failed is what went wrong that must not.
	Failed string `json:"failed,omitempty"`
	// Ended says that this is the last line, after a shutdown.
	Ended bool `json:"ended,omitempty"`
}

// addition is what a process has added to the count of an Event.
type addition struct {
	Key   int    `json:"key"`
	Event string `json:"event"`
	Count int64  `json:"count"`
}

// loss is what was dropped of a key.
type loss struct {
	Key    int               `json:"key"`
	Count  int               `json:"count"`
	Reason events.DropReason `json:"reason"`
}

// stats are what is wanted of events.Stats, in a form for JSON.
type stats struct {
	Occurrences uint64            `json:"occurrences"`
	Dropped     map[string]uint64 `json:"dropped,omitempty"`
	Writes      map[string]uint64 `json:"writes,omitempty"` // by outcome and kind
	Adopted     uint64            `json:"adopted"`
	Restored    uint64            `json:"restored"`
}

func statsOf(s events.Stats) *stats {
	r := &stats{
		Occurrences: s.Occurrences,
		Dropped:     make(map[string]uint64),
		Writes:      make(map[string]uint64),
		Adopted:     s.Adopted,
		Restored:    s.Restored,
	}
	for reason, n := range s.Dropped {
		r.Dropped[string(reason)] += n
	}
	for key, n := range s.Writes {
		r.Writes[key.Outcome+" "+key.Kind] += n
	}
	return r
}

// reporter writes reports. It may be used concurrently.
type reporter struct {
	begin time.Time

	mu  sync.Mutex
	out io.Writer
}

// write returns when the line is in the pipe, and so out of reach of whatever
// becomes of this process. A parent that is not there any more cannot be told.
func (r *reporter) write(line report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line.At = time.Since(r.begin)
	data, err := json.Marshal(line)
	if err != nil {
		panic(err) // all of it can be marshalled
	}
	if _, err := r.out.Write(append(data, '\n')); err != nil {
		exitOrphaned()
	}
}

// readReports calls f for each line, until the emitter's end. A last line that is
// not whole is left out: what it was to announce has not been done.
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
