package conformance

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	eventseries "github.com/eventseries/eventseries/events"
)

const controller = "example.com/conformance"

var makers = map[string]func(*fake.Clientset, func(events.EventSink) events.EventSink) events.EventBroadcaster{
	"client-go": func(clients *fake.Clientset, wrap func(events.EventSink) events.EventSink) events.EventBroadcaster {
		return events.NewBroadcaster(wrap(&events.EventSinkImpl{Interface: clients.EventsV1()}))
	},
	"eventseries": func(clients *fake.Clientset, wrap func(events.EventSink) events.EventSink) events.EventBroadcaster {
		return eventseries.NewBroadcaster(wrap(&eventseries.EventSinkImpl{Interface: clients.EventsV1()}))
	},
}

// program records events on a fake server, in virtual time.
type program struct {
	name        string // in makers
	clients     *fake.Clientset
	sink        *sink
	broadcaster events.EventBroadcaster
	recorder    events.EventRecorderLogger
}

func withBoth(t *testing.T, test func(t *testing.T, p *program)) {
	t.Helper()
	for name := range makers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, startProgram(t, name)) })
		})
	}
}

// startProgram makes a program and starts its broadcaster. The end of the test
// shuts it down, and fails if a goroutine is left.
func startProgram(t *testing.T, name string) *program {
	t.Helper()
	p := &program{name: name, clients: fake.NewClientset()}
	p.broadcaster = makers[name](p.clients, func(to events.EventSink) events.EventSink {
		p.sink = &sink{EventSink: to}
		return p.sink
	})
	t.Cleanup(p.broadcaster.Shutdown)
	require.NoError(t, p.broadcaster.StartRecordingToSinkWithContext(t.Context()))
	p.recorder = p.broadcaster.NewRecorder(scheme.Scheme, controller)
	return p
}

// emit emits an event and waits for the requests that follow.
func (p *program) emit(regarding *corev1.ObjectReference, action string) {
	p.recorder.Eventf(regarding, nil, corev1.EventTypeNormal, "Tested", action, "note")
	synctest.Wait()
}

// stored returns all Events on the server.
func (p *program) stored(t *testing.T) []eventsv1.Event {
	t.Helper()
	list, err := p.clients.EventsV1().Events(metav1.NamespaceAll).List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

func (p *program) only(t *testing.T) *eventsv1.Event {
	t.Helper()
	stored := p.stored(t)
	require.Len(t, stored, 1)
	return &stored[0]
}

// sink can fail.
type sink struct {
	events.EventSink

	mu  sync.Mutex
	err error
}

func (s *sink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	return s.EventSink.Create(ctx, event)
}

func (s *sink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	return s.EventSink.Patch(ctx, event, data)
}

func (s *sink) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// failWith makes calls fail from now on, unless err is nil.
func (s *sink) failWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func pod(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: name, UID: "uid-1"}
}

// lines is a log without times.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) logger() klog.Logger {
	return funcr.New(func(_, args string) { l.add(args) }, funcr.Options{})
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

func (l *lines) get() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.all...)
}

func TestLogOfEvents(t *testing.T) {
	logged := make(map[string][]string)
	withBoth(t, func(t *testing.T, p *program) {
		var log lines
		stop, err := p.broadcaster.StartLogging(log.logger())
		require.NoError(t, err)
		p.recorder.Eventf(pod("a"), nil, "Warning", "Failed", "Testing", "failed %d times", 2)
		synctest.Wait()
		stop()
		p.emit(pod("a"), "Testing")
		logged[p.name] = log.get()
	})
	require.Len(t, logged["client-go"], 1)
	assert.Equal(t, logged["client-go"], logged["eventseries"])
}

func TestWithLogger(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		var log lines
		recorder := p.recorder.WithLogger(log.logger())
		recorder.Eventf(nil, nil, "Normal", "Lost", "Testing", "note")
		recorder.Eventf(pod("a"), nil, "Normal", "Tested", "Testing", "note")
		synctest.Wait()
		require.Len(t, log.get(), 1)
		assert.Contains(t, log.get()[0], "Lost")
		assert.Equal(t, "Tested", p.only(t).Reason, "it records events")
	})
}
