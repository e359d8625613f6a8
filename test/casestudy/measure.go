package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
)

// collect reads what the API server knows after the exit of the program: the Events, which it
// keeps in a file, the size of all requests that wrote Events, and the audit log.
func (c *cluster) collect(ctx context.Context) (events []eventsv1.Event, bytes int, audit []byte, err error) {
	list, err := c.clients.EventsV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, 0, nil, err
	}
	data, err := json.MarshalIndent(list.Items, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(c.dir, "events.json"), data, 0o644)
	}
	if err != nil {
		return nil, 0, nil, err
	}
	metrics, err := c.metrics(ctx)
	if err == nil {
		bytes, err = requestBytes(metrics)
	}
	if err != nil {
		return nil, 0, nil, err
	}
	audit, err = os.ReadFile(filepath.Join(c.dir, "audit.log"))
	return list.Items, bytes, audit, err
}

// measure collects the result of a story.
func (c *cluster) measure(ctx context.Context, end exit, s *side) error {
	events, bytes, audit, err := c.collect(ctx)
	if err != nil {
		return err
	}
	programLog, err := os.ReadFile(filepath.Join(c.dir, "program.log"))
	if err != nil {
		return err
	}
	before := compare(c.before, string(programLog), audit)
	*s = compare(events, string(programLog), audit)
	s.RecordedBefore, s.RequestBytes = before.Recorded, bytes
	s.Exit, s.ExitSeconds = end.state.String(), end.duration.Seconds()
	s.CPUSeconds, s.MaxRSS = usage(end.state)
	return nil
}

// emitted matches a line of the log, which has one for each occurrence: of structured
// logging, or of the legacy StartLogging, perhaps quoted.
var emitted = regexp.MustCompile(`"Event occurred" .*\bkind="([^"]*)" .*\breason="([^"]*)"` +
	`|Event\(v1\.ObjectReference{Kind:\\?"([^"\\]*)\\?", .*\): type: '\w+' reason: '([^']*)'`)

// compare compares the Events on the server with the log and the audit log.
func compare(events []eventsv1.Event, programLog string, audit []byte) side {
	s := side{Requests: map[string]int{}, JobsNamed: map[string]int{}}
	type key struct{ kind, reason string }
	reasons := map[key]*reason{}
	of := func(kind, name string) *reason {
		k := key{kind, name}
		if reasons[k] == nil {
			reasons[k] = &reason{Kind: kind, Reason: name}
		}
		return reasons[k]
	}
	for line := range strings.Lines(programLog) {
		if f := emitted.FindStringSubmatch(line); f != nil {
			s.Emitted++
			of(f[1]+f[3], f[2]+f[4]).Emitted++
		}
	}
	events = slices.DeleteFunc(slices.Clone(events), func(e eventsv1.Event) bool {
		return e.ReportingController == "ipallocator-repair-controller" // of the API server
	})
	s.Events = len(events)
	for i := range events {
		e := &events[i]
		count := int(query.FromEvent(e, time.Now()).Count)
		s.Recorded += count
		r := of(e.Regarding.Kind, e.Reason)
		r.Events++
		r.Recorded += count
		if e.Related != nil {
			s.Related++
			if !strings.Contains(r.Related, e.Related.Kind) {
				r.Related = strings.TrimPrefix(r.Related+", "+e.Related.Kind, ", ")
			}
		}
		if strings.HasPrefix(e.Note, series.CombinedPrefix) {
			s.Combined++
		}
	}
	for _, r := range reasons {
		s.Reasons = append(s.Reasons, *r)
	}
	slices.SortFunc(s.Reasons, func(a, b reason) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Reason, b.Reason))
	})
	jobs := s.count(audit)
	s.Jobs = len(jobs)
	s.name(slices.Sorted(maps.Keys(jobs)), events)
	return s
}

// entry is a request in the audit log.
type entry struct {
	Verb           string
	User           struct{ Username string }
	ObjectRef      struct{ Resource, Name string }
	ResponseStatus struct{ Code int }
}

// entries yields the requests in an audit log.
func entries(audit []byte) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for line := range bytes.Lines(audit) {
			var e entry
			if json.Unmarshal(line, &e) == nil && !yield(e) {
				return
			}
		}
	}
}

// count counts the requests of the program, and returns the Jobs that the CronJob
// controller created.
func (s *side) count(audit []byte) map[string]bool {
	jobs := map[string]bool{}
	for entry := range entries(audit) {
		user := entry.User.Username
		if user != manager && !strings.HasPrefix(user, "system:serviceaccount:") {
			continue
		}
		code := entry.ResponseStatus.Code
		switch {
		case entry.ObjectRef.Resource == "jobs":
			if code == 201 && strings.HasSuffix(user, ":cronjob-controller") {
				jobs[entry.ObjectRef.Name] = true
			}
		case entry.ObjectRef.Resource != "events":
		case code == 403:
			s.Denied++
			fallthrough
		default:
			s.Requests[entry.Verb]++
		}
	}
	return jobs
}

// name counts the Jobs that an Event of a CronJob names: as the related object, and in
// the message.
func (s *side) name(jobs []string, events []eventsv1.Event) {
	for _, job := range jobs {
		named := map[string]bool{}
		for i := range events {
			e := &events[i]
			if e.Regarding.Kind != "CronJob" {
				continue
			}
			if e.Related != nil && e.Related.Kind == "Job" && e.Related.Name == job {
				named["related "+e.Reason] = true
				named["related"] = true
			}
			if slices.Contains(strings.FieldsFunc(e.Note, func(r rune) bool { return strings.ContainsRune(" ,:", r) }), job) {
				named["message "+e.Reason] = true
				named["message"] = true
			}
		}
		for k := range named {
			s.JobsNamed[k]++
		}
	}
}

// usage returns the CPU time of a process in seconds, and its memory at most in bytes.
func usage(state *os.ProcessState) (cpu float64, maxRSS int64) {
	if rusage, ok := state.SysUsage().(*syscall.Rusage); ok {
		maxRSS = rusage.Maxrss << 10 // kB on Linux
	}
	return (state.UserTime() + state.SystemTime()).Seconds(), maxRSS
}

// metrics returns the metrics of the API server.
func (c *cluster) metrics(ctx context.Context) ([]byte, error) {
	return c.clients.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
}

// eachMetric calls f for the metrics with a name: with the labels, and the value, which is
// the sum of a histogram.
func eachMetric(metrics []byte, name string, f func(labels map[string]string, value float64)) error {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(metrics))
	if err != nil {
		return err
	}
	for _, m := range families[name].GetMetric() {
		labels := make(map[string]string)
		for _, label := range m.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		f(labels, m.GetCounter().GetValue()+m.GetHistogram().GetSampleSum())
	}
	return nil
}

// requestBytes returns the size of all requests that write Events.
func requestBytes(metrics []byte) (int, error) {
	sum := 0.0
	err := eachMetric(metrics, "apiserver_request_body_size_bytes", func(labels map[string]string, value float64) {
		if labels["resource"] == "events" {
			sum += value
		}
	})
	return int(sum), err
}

// serverCPU returns the CPU time of the API server and etcd, in seconds.
func (c *cluster) serverCPU(ctx context.Context) (float64, error) {
	metrics, err := c.metrics(ctx)
	if err != nil {
		return 0, err
	}
	var values []float64
	err = eachMetric(metrics, "process_cpu_seconds_total", func(_ map[string]string, value float64) { values = append(values, value) })
	switch {
	case err != nil:
		return 0, err
	case len(values) != 1:
		return 0, errors.New("no process_cpu_seconds_total")
	}
	return values[0], nil
}
