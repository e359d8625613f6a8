// Package recorders gives a program one of several recorders of events, and counts what
// is emitted to it. make casestudy-flux copies it into kustomize-controller. make
// casestudy-kubelet and make casestudy-scheduler copy this file into Kubernetes.
package recorders

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
)

// The names of the recorders.
const (
	ToolsRecord = "tools/record" // client-go's legacy recorder
	ToolsEvents = "tools/events" // client-go's newer one
	// Eventseries is the recorder of this repository. The program emits to it as it would
	// to tools/events.
	Eventseries = "eventseries"
	// Import is the same recorder. The program emits to it as it would to tools/record,
	// so only the import of the manager changes.
	Import = "eventseries, legacy calls"
	// CompatRecord is the same recorder in place of tools/record: only an import changes.
	CompatRecord = "compat/record"
	// LateCompatRecord is CompatRecord for a program that calls Shutdown, so that it does
	// not need early heartbeats.
	LateCompatRecord = "compat/record, without FirstHeartbeat"
)

const (
	// Node is the name of the hollow node.
	Node = "node"
	// Crashing begins the names of the Pods whose containers exit.
	Crashing = "crash-"
)

// Config says which recorder a program gets. It is the content of the file that
// $CASESTUDY_CONFIG names.
type Config struct {
	Recorder string
	Scale    int    // how much faster time passes for the recorder
	Counts   string // the file for the counts
}

// ReadConfig reads the file that $CASESTUDY_CONFIG names.
func ReadConfig() (c Config, err error) {
	content, err := os.ReadFile(os.Getenv("CASESTUDY_CONFIG"))
	if err == nil {
		err = json.Unmarshal(content, &c)
	}
	if err != nil {
		return c, fmt.Errorf("recorders: %w", err)
	}
	return c, nil
}

// Scaled returns a duration that is as much shorter as time passes faster.
func (c Config) Scaled(d time.Duration) time.Duration { return d / time.Duration(c.Scale) }

// Correlator returns the defaults of client-go's legacy recorder, scaled.
func (c Config) Correlator() record.CorrelatorOptions {
	return record.CorrelatorOptions{
		MaxIntervalInSeconds: int(c.Scaled(10 * time.Minute).Seconds()), QPS: float32(1 / c.Scaled(5*time.Minute).Seconds()),
	}
}

// ScaleOptions scales the options of this repository's recorder.
func (c Config) ScaleOptions(o *events.Options) {
	o.EventTTL, o.FinishAfter, o.MaxWindow = c.Scaled(time.Hour), c.Scaled(6*time.Minute), c.Scaled(36*time.Minute)
	o.FirstHeartbeat = c.Scaled(o.FirstHeartbeat)
	o.QPS = 50 * float32(c.Scale)
}

// Count is the number of occurrences with the same fields.
type Count struct {
	Name, Type, Reason string // Name is that of the object
	Count              int
}

// Counter counts the events that its recorders pass on.
type Counter struct {
	mu     sync.Mutex
	counts map[Count]int // the keys have no count
	closed bool
}

// NewCounter returns a counter without recorders.
func NewCounter() *Counter { return &Counter{counts: make(map[Count]int)} }

// Close makes the recorders ignore the events from now on.
func (c *Counter) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// Write writes the counts to a file.
func (c *Counter) Write(file string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]Count, 0, len(c.counts))
	for key, n := range c.counts {
		key.Count = n
		list = append(list, key)
	}
	content, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(file, content, 0o600)
	}
	if err != nil {
		return fmt.Errorf("recorders: %w", err)
	}
	return nil
}

// Add counts an event. It reports false after Close.
func (c *Counter) Add(object runtime.Object, eventtype, reason string) bool {
	key := Count{Type: eventtype, Reason: reason}
	if ref, ok := object.(*corev1.ObjectReference); ok {
		key.Name = ref.Name
	} else if accessor, err := meta.Accessor(object); err == nil {
		key.Name = accessor.GetName()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.counts[key]++
	}
	return !c.closed
}

// Recorder returns a recorder that counts events, and passes them on.
func (c *Counter) Recorder(to record.EventRecorderLogger) record.EventRecorderLogger {
	return countingLogger{countingRecorder{c, to.AnnotatedEventf}, to}
}

// countingRecorder is a legacy recorder.
type countingRecorder struct {
	counter *Counter
	emit    func(object runtime.Object, annotations map[string]string, eventtype, reason, message string, args ...any)
}

var _ record.EventRecorder = countingRecorder{}

func (r countingRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.AnnotatedEventf(object, nil, eventtype, reason, "%s", message)
}

func (r countingRecorder) Eventf(object runtime.Object, eventtype, reason, message string, args ...any) {
	r.AnnotatedEventf(object, nil, eventtype, reason, message, args...)
}

func (r countingRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, message string, args ...any) {
	if r.counter.Add(object, eventtype, reason) {
		r.emit(object, annotations, eventtype, reason, message, args...)
	}
}

// countingLogger is a countingRecorder that can have a logger.
type countingLogger struct {
	countingRecorder
	to record.EventRecorderLogger
}

func (r countingLogger) WithLogger(logger klog.Logger) record.EventRecorderLogger {
	return r.counter.Recorder(r.to.WithLogger(logger))
}
