package recorders

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/controllerruntime"
	"github.com/eventseries/eventseries/events"
)

// action is the action of all events that the program emits as it would to tools/events.
const action = "Reconcile"

// NewManager takes the place of manager.New.
func NewManager(config *rest.Config, options manager.Options) (manager.Manager, error) {
	c, err := ReadConfig()
	if err != nil {
		return nil, err
	}
	return newManager(c, config, options)
}

func newManager(c Config, config *rest.Config, options manager.Options) (manager.Manager, error) {
	m := &counting{counter: NewCounter(), file: c.Counts}
	var err error
	switch c.Recorder {
	case ToolsRecord:
		// The manager does not stop a broadcaster that it has not created.
		broadcaster := record.NewBroadcasterWithCorrelatorOptions(c.Correlator())
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
		var scaled events.Options
		c.ScaleOptions(&scaled)
		m.Manager, err = controllerruntime.NewManager(config, options, events.NewBroadcasterWithOptions(compat.NewSink(clientset), scaled))
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
	newer   bool   // pass events on with GetEventRecorder
	stop    func() // if not nil, stops the recorder after the manager
	counter *Counter
	file    string
}

// Start runs the manager, and writes the counts after it has stopped.
func (m *counting) Start(ctx context.Context) error {
	err := m.Manager.Start(ctx)
	if m.stop != nil {
		m.stop()
	}
	return errors.Join(err, m.counter.Write(m.file))
}

// GetEventRecorderFor returns a recorder that counts events and passes them on.
func (m *counting) GetEventRecorderFor(name string) record.EventRecorder {
	if m.newer {
		recorder := m.GetEventRecorder(name)
		return countingRecorder{m.counter, func(object runtime.Object, _ map[string]string, eventtype, reason, message string, args ...any) {
			recorder.Eventf(object, nil, eventtype, reason, action, message, args...)
		}}
	}
	return countingRecorder{m.counter, m.Manager.GetEventRecorderFor(name).AnnotatedEventf} //nolint:staticcheck // the program uses it
}
