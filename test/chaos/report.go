package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	runtimemetrics "runtime/metrics"
	"sync"
	"time"

	"github.com/eventseries/eventseries/events"
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
	// Added is what the process has added to an Event, or may add with its next request,
	// beyond what is in earlier reports.
	Added *addition `json:"added,omitempty"`
	// Answered is the end of a request.
	Answered *answer `json:"answered,omitempty"`
	// Dropped is a call of events.Options.OnDrop.
	Dropped *loss             `json:"dropped,omitempty"`
	Stats   map[string]uint64 `json:"stats,omitempty"`
	// Heap is the size of live objects in bytes.
	Heap uint64 `json:"heap,omitempty"`
	// Failed is an unexpected failure.
	Failed string `json:"failed,omitempty"`
	// Ended is the last line, after a shutdown.
	Ended bool `json:"ended,omitempty"`
}

// addition is what a process adds to the count of an Event.
type addition struct {
	Key   int    `json:"key"`
	Event string `json:"event"`
	// Sent is the maximum. Acked is the part that the server certainly has.
	Sent  int64 `json:"sent,omitempty"`
	Acked int64 `json:"acked,omitempty"`
	// Twice is the maximum of what the Event counts twice, as the limitations of package
	// tracker permit: what was in requests without an answer before others have written.
	Twice int64 `json:"twice,omitempty"`
}

type answer struct {
	After  time.Duration `json:"after"`
	Failed bool          `json:"failed,omitempty"`
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
	for _, r := range s.Requests {
		stats["requests"] += r.Count
		stats["requests, "+r.Outcome+" "+r.Kind] += r.Count
	}
	return stats
}

const droppedPrefix = "dropped, "

// liveHeap returns the size of the objects that the latest garbage collection found.
func liveHeap() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}

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
