// Package recorders gives a manager one of several recorders of events, and counts what
// is emitted to it. make casestudy-flux copies it into kustomize-controller.
package recorders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/controllerruntime"
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
)

// action is the action of all events that the program emits as it would to tools/events.
const action = "Reconcile"

// Config says which recorder a program gets. It is the content of the file that
// $CASESTUDY_CONFIG names.
type Config struct {
	Recorder string
	Scale    int    // how much faster time passes for the recorder
	Counts   string // the file for the counts
}

// Count is the number of occurrences with the same fields.
type Count struct {
	Name, Type, Reason string // Name is that of the object
	Count              int
}

// NewManager takes the place of manager.New.
func NewManager(config *rest.Config, options manager.Options) (manager.Manager, error) {
	var c Config
	content, err := os.ReadFile(os.Getenv("CASESTUDY_CONFIG"))
	if err == nil {
		err = json.Unmarshal(content, &c)
	}
	if err != nil {
		return nil, fmt.Errorf("recorders: %w", err)
	}
	return newManager(c, config, options)
}

func newManager(c Config, config *rest.Config, options manager.Options) (manager.Manager, error) {
	m := &counting{counts: make(map[Count]int), file: c.Counts}
	scaled := func(d time.Duration) time.Duration { return d / time.Duration(c.Scale) }
	var err error
	switch c.Recorder {
	case ToolsRecord:
		// These are client-go's defaults. The manager does not stop a broadcaster that it
		// has not created.
		broadcaster := record.NewBroadcasterWithCorrelatorOptions(record.CorrelatorOptions{
			MaxIntervalInSeconds: int(scaled(10 * time.Minute).Seconds()), QPS: float32(1 / scaled(5*time.Minute).Seconds()),
		})
		options.EventBroadcaster = broadcaster //nolint:staticcheck // there is no other way to set its options
		m.stop = broadcaster.Shutdown
		m.Manager, err = manager.New(config, options)
	case ToolsEvents:
		m.Manager, err = manager.New(config, options)
	case Eventseries, Import:
		clientset, clientErr := kubernetes.NewForConfig(config)
		if clientErr != nil {
			return nil, fmt.Errorf("recorders: %w", clientErr)
		}
		m.Manager, err = controllerruntime.NewManager(config, options, events.NewBroadcasterWithOptions(compat.NewSink(clientset), events.Options{
			EventTTL: scaled(time.Hour), FinishAfter: scaled(6 * time.Minute), MaxWindow: scaled(36 * time.Minute), QPS: 50 * float32(c.Scale),
		}))
	default:
		return nil, fmt.Errorf("recorders: no recorder %q", c.Recorder)
	}
	m.newer = c.Recorder == ToolsEvents || c.Recorder == Eventseries
	if err != nil {
		return nil, fmt.Errorf("recorders: %w", err)
	}
	return m, nil
}

// counting is a manager whose legacy recorders count events.
type counting struct {
	manager.Manager
	newer bool   // pass events on with GetEventRecorder
	stop  func() // if not nil, stops the recorder after the manager
	file  string

	mu     sync.Mutex
	counts map[Count]int // the keys have no count
}

// Start runs the manager, and writes the counts after it has stopped.
func (m *counting) Start(ctx context.Context) error {
	err := m.Manager.Start(ctx)
	if m.stop != nil {
		m.stop()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Count, 0, len(m.counts))
	for key, n := range m.counts {
		key.Count = n
		list = append(list, key)
	}
	content, jsonErr := json.Marshal(list)
	if jsonErr == nil {
		jsonErr = os.WriteFile(m.file, content, 0o600)
	}
	return errors.Join(err, jsonErr)
}

// GetEventRecorderFor returns a recorder that counts events and passes them on.
func (m *counting) GetEventRecorderFor(name string) record.EventRecorder {
	if m.newer {
		recorder := m.GetEventRecorder(name)
		return countingRecorder{m, func(object runtime.Object, _ map[string]string, eventtype, reason, message string, args ...any) {
			recorder.Eventf(object, nil, eventtype, reason, action, message, args...)
		}}
	}
	return countingRecorder{m, m.Manager.GetEventRecorderFor(name).AnnotatedEventf} //nolint:staticcheck // the program uses it
}

// countingRecorder is a legacy recorder.
type countingRecorder struct {
	manager *counting
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
	key := Count{Type: eventtype, Reason: reason}
	if accessor, err := meta.Accessor(object); err == nil {
		key.Name = accessor.GetName()
	}
	r.manager.mu.Lock()
	r.manager.counts[key]++
	r.manager.mu.Unlock()
	r.emit(object, annotations, eventtype, reason, message, args...)
}
