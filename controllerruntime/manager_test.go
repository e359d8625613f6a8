package controllerruntime

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	legacyrecord "k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/compat/record"
	"github.com/eventseries/eventseries/events"
)

// fakeServer answers requests for one Lease, and for the creation of Events.
type fakeServer struct {
	denied bool // whether it denies Events

	mu        sync.Mutex
	lease     []byte
	mediaType string            // of the lease
	events    map[string]string // reporting controllers by note
	attempts  map[string]chan struct{}
	seen      outcome
}

func newFakeServer() *fakeServer {
	return &fakeServer{events: make(map[string]string), attempts: make(map[string]chan struct{})}
}

// attempt returns a channel that is closed when there is a request for an Event with a note.
func (s *fakeServer) attempt(note string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attemptLocked(note)
}

func (s *fakeServer) attemptLocked(note string) chan struct{} {
	if s.attempts[note] == nil {
		s.attempts[note] = make(chan struct{})
	}
	return s.attempts[note]
}

func (s *fakeServer) outcome() outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return outcome{sorted(s.seen.Attempted), sorted(s.seen.Written), sorted(s.seen.EventAgents), sorted(s.seen.Leases)}
}

func (s *fakeServer) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body []byte
	status, mediaType := http.StatusOK, "application/json"
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	switch {
	case strings.Contains(req.URL.Path, "/events"):
		var note, controller string
		switch event := object.(type) {
		case *eventsv1.Event:
			note, controller = event.Note, event.ReportingController
		case *corev1.Event:
			note, controller = event.Message, event.ReportingController
		}
		if err != nil || note == "" || req.Method != http.MethodPost {
			status = http.StatusForbidden
			break
		}
		if note = candidate(note); note != "stopped leading" {
			s.seen.Attempted = append(s.seen.Attempted, note)
			// controller-runtime sends no user agent with LeaderElectionConfig.
			s.seen.EventAgents = append(s.seen.EventAgents, cmp.Or(req.UserAgent(), rest.DefaultKubernetesUserAgent()))
		}
		if done := s.attemptLocked(note); !isClosed(done) {
			close(done)
		}
		if s.denied {
			status = http.StatusForbidden
			break
		}
		mediaType = req.Header.Get("Content-Type")
		s.events[note] = controller
		if note != "stopped leading" {
			s.seen.Written = append(s.seen.Written, note)
		}
	default:
		if lease, ok := object.(*coordinationv1.Lease); ok && req.Method == http.MethodPost {
			s.note(req, lease)
		}
		if req.Method == http.MethodGet && s.lease == nil {
			status = http.StatusNotFound
			break
		}
		if req.Method != http.MethodGet {
			s.lease, s.mediaType = body, req.Header.Get("Content-Type")
		}
		body, mediaType = s.lease, s.mediaType
	}
	return &http.Response{
		StatusCode: status, Request: req, Body: io.NopCloser(bytes.NewReader(body)),
		Header: http.Header{"Content-Type": []string{mediaType}},
	}, nil
}

// note notes a request for a new Lease.
func (s *fakeServer) note(req *http.Request, lease *coordinationv1.Lease) {
	timeout := "none"
	if deadline, ok := req.Context().Deadline(); ok {
		timeout = time.Until(deadline).Round(time.Second).String()
	}
	s.seen.Leases = append(s.seen.Leases, fmt.Sprint(lease.Namespace, "/", lease.Name, " ", lease.Labels, " ", req.UserAgent(), " ", timeout))
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// config returns the configuration of clients that reach only the fake server.
func (s *fakeServer) config() *rest.Config {
	return &rest.Config{Host: "https://fake.test", Transport: s}
}

var pod = &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web"}

// All recorders emit to the broadcaster, which writes and logs each event once.
func TestManager(t *testing.T) {
	for name, newManager := range map[string]func(*rest.Config, manager.Options) (manager.Manager, error){
		"created":            newOurs,
		"with compat":        withLegacy(newCompat),
		"with compat/record": withLegacy(newRecord),
		"with another lease": func(config *rest.Config, opts manager.Options) (manager.Manager, error) {
			opts.LeaderElectionConfig = config
			return NewManager(config, opts, nil)
		},
		"wrapped": newWrapped,
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			logged := map[string]int{}
			api := newFakeServer()
			mgr, err := newManager(api.config(), manager.Options{
				Logger: funcr.New(func(prefix, args string) {
					mu.Lock()
					defer mu.Unlock()
					for _, note := range []string{"from a recorder", "with annotations", "from a legacy recorder", "became leader", "stopped leading"} {
						if strings.HasPrefix(prefix, "events") && strings.Contains(args, note) {
							logged[note]++
						}
					}
				}, funcr.Options{Verbosity: 1}),
				Metrics:                       server.Options{BindAddress: "0"},
				LeaderElection:                true,
				LeaderElectionID:              "leader",
				LeaderElectionNamespace:       "shop",
				LeaderElectionReleaseOnCancel: true,
			})
			require.NoError(t, err)
			recorder := mgr.GetEventRecorder("example.com/new")
			annotated, ok := recorder.(events.Recorder)
			require.True(t, ok)
			legacy := mgr.GetEventRecorderFor("example.com/old") //nolint:staticcheck // tested here
			ctx, cancel := context.WithCancel(t.Context())
			require.NoError(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
				recorder.Eventf(pod, nil, "Normal", "Tested", "Testing", "from a recorder")
				annotated.AnnotatedEventf(pod, nil, map[string]string{"a": "b"}, "Normal", "Annotated", "Testing", "with annotations")
				cancel()
				<-ctx.Done()
				legacy.Event(pod, "Normal", "Legacy", "from a legacy recorder") // as late as a reconciler
				return nil
			})))
			require.NoError(t, mgr.Start(ctx))
			assert.Equal(t, map[string]string{
				"from a recorder": "example.com/new", "with annotations": "example.com/new", "from a legacy recorder": "example.com/old",
				"became leader": compat.LeaderElection, "stopped leading": compat.LeaderElection,
			}, api.events)
			assert.Equal(t, map[string]int{
				"from a recorder": 1, "with annotations": 1, "from a legacy recorder": 1, "became leader": 1, "stopped leading": 1,
			}, logged)
		})
	}
}

// Both recorders of a cluster emit to a broadcaster, which is shut down with the cluster.
func TestCluster(t *testing.T) {
	api := newFakeServer()
	c, err := NewCluster(api.config(), nil, func(o *cluster.Options) { o.Scheme = scheme.Scheme })
	require.NoError(t, err)
	mgr, err := manager.New(api.config(), manager.Options{Metrics: server.Options{BindAddress: "0"}})
	require.NoError(t, err)
	require.NoError(t, mgr.Add(c))
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		c.GetEventRecorder("example.com/new").Eventf(pod, nil, "Normal", "Tested", "Testing", "from a recorder")
		cancel()
		<-ctx.Done()
		c.GetEventRecorderFor("example.com/old").Event(pod, "Normal", "Legacy", "from a legacy recorder") //nolint:staticcheck // tested here
		return nil
	})))
	require.NoError(t, mgr.Start(ctx))
	assert.Equal(t, map[string]string{"from a recorder": "example.com/new", "from a legacy recorder": "example.com/old"}, api.events)

	sameController := newSlow(t, events.Options{Scope: events.SameController})
	c, err = NewCluster(api.config(), sameController)
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, c.Start(ended))
	require.ErrorIs(t, sameController.StartRecordingToSinkWithContext(ctx), events.ErrShutDown, "it is not started, but shut down")

	_, err = NewCluster(nil, nil)
	assert.ErrorContains(t, err, "config is nil")
	_, err = NewCluster(api.config(), nil, func(o *cluster.Options) { o.EventBroadcaster = legacyrecord.NewBroadcaster() }) //nolint:staticcheck // tested here
	assert.ErrorContains(t, err, "want nil, or a *compat.Broadcaster")
}

func TestErrors(t *testing.T) {
	config := (&fakeServer{}).config()
	broken := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: []byte("none")}}
	broadcaster := events.NewBroadcaster(nil)
	for title, tt := range map[string]struct {
		config  *rest.Config
		options manager.Options
		want    string
	}{
		"no config":               {want: "config is nil"},
		"invalid config":          {config: broken, want: "unable to load root certificates"},
		"a broadcaster":           {config, manager.Options{EventBroadcaster: legacyrecord.NewBroadcaster()}, "is a *record.eventBroadcasterImpl: want nil, or a"}, //nolint:staticcheck // tested here
		"a nil pointer":           {config, manager.Options{EventBroadcaster: (*compat.Broadcaster)(nil)}, "is a nil *compat.Broadcaster: want nil, or a"},         //nolint:staticcheck // tested here
		"another nil pointer":     {config, manager.Options{EventBroadcaster: (*record.Broadcaster)(nil)}, "is a nil *record.Broadcaster: want nil, or a"},         //nolint:staticcheck // tested here
		"of another broadcaster":  {config, manager.Options{EventBroadcaster: compat.NewBroadcaster(nil)}, "whose Events() is the broadcaster of the manager"},     //nolint:staticcheck // tested here
		"of a broadcaster inside": {config, manager.Options{EventBroadcaster: record.NewBroadcaster()}, "whose Events() is the broadcaster of the manager"},        //nolint:staticcheck // tested here
	} {
		_, err := NewManager(tt.config, tt.options, broadcaster)
		assert.ErrorContains(t, err, tt.want, title)
	}
	_, err := ResourceLock(nil, manager.Options{}, broadcaster)
	assert.ErrorContains(t, err, "controllerruntime: config is nil")
	_, err = ResourceLock(config, manager.Options{}, nil)
	assert.ErrorContains(t, err, "controllerruntime: broadcaster is nil")
	_, err = Wrap(&fakeManager{config: broken}, nil)
	assert.ErrorContains(t, err, "controllerruntime: create a client for events")
	_, err = Wrap(&fakeManager{}, newSlow(t, events.Options{Scope: events.SameController}))
	assert.ErrorContains(t, err, "controllerruntime: add the broadcaster")
	_, err = newProvider(recorders{}, func(recorder.Provider, string) error { return nil })
	assert.ErrorContains(t, err, "unknown recorders: error")
}

// fakeManager is a manager that only starts.
type fakeManager struct {
	manager.Manager
	config *rest.Config
	start  func() error
	log    logr.Logger
}

func (m *fakeManager) Start(context.Context) error { return m.start() }
func (m *fakeManager) GetConfig() *rest.Config     { return m.config }
func (m *fakeManager) GetHTTPClient() *http.Client { return nil }
func (m *fakeManager) GetScheme() *runtime.Scheme  { return scheme.Scheme }
func (m *fakeManager) GetLogger() logr.Logger      { return m.log }
func (m *fakeManager) Add(manager.Runnable) error  { return errors.New("no runnables") }

// slowSink is a server that takes a second for each request, so that a shutdown has to wait
// as long as it can.
type slowSink struct{ events.EventSink }

func (slowSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	select {
	case <-time.After(time.Second):
		return event, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newSlow returns a broadcaster that writes to a slowSink.
func newSlow(t *testing.T, opts events.Options) *events.Broadcaster {
	t.Helper()
	broadcaster, err := events.New(slowSink{}, opts)
	require.NoError(t, err)
	return broadcaster
}

// emitMany emits more events than a slowSink can write in a shutdown.
func emitMany(mgr manager.Manager) {
	recorder := mgr.GetEventRecorder("example.com/test")
	for i := range 10_000 {
		recorder.Eventf(pod, nil, "Warning", fmt.Sprint("Tested", i), "Testing", "note")
	}
}

// A program that has lost its lease must exit, because its reconcilers can still run.
func TestStartReturnsSoonAfterFailure(t *testing.T) {
	for _, failure := range []error{nil, errors.New("leader election lost")} {
		synctest.Test(t, func(t *testing.T) {
			broadcaster := newSlow(t, events.Options{})
			mgr, err := Wrap(&fakeManager{start: func() error { return failure }}, broadcaster)
			require.NoError(t, err)
			emitMany(mgr)
			begin := time.Now()
			require.Equal(t, failure, mgr.Start(t.Context()))
			if took := time.Since(begin); failure != nil {
				assert.Equal(t, failureGrace, took)
			} else {
				assert.Greater(t, took, 5*failureGrace)
			}
			broadcaster.Shutdown() // waits
			assert.Positive(t, broadcaster.Stats().Dropped["Shutdown"])
		})
	}
}

func TestStart(t *testing.T) {
	starts := 0
	fake := &fakeManager{start: func() error { starts++; return nil }}
	broadcaster := newSlow(t, events.Options{})
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	mgr, err := Wrap(fake, broadcaster)
	require.NoError(t, err)
	fake.start = func() error {
		if starts++; starts > 1 {
			return errors.New("manager already started")
		}
		require.EqualError(t, mgr.Start(t.Context()), "manager already started")
		_, err := broadcaster.StartEventWatcher(func(runtime.Object) {})
		require.NoError(t, err, "it is not shut down")
		return nil
	}
	require.NoError(t, mgr.Start(t.Context()), "the user may start the broadcaster")
	require.Equal(t, 2, starts)

	for _, logger := range []logr.Logger{logr.Discard(), funcr.New(func(string, string) {}, funcr.Options{Verbosity: 1})} {
		fake.log = logger
		mgr, err := Wrap(fake, broadcaster)
		require.NoError(t, err)
		require.ErrorIs(t, mgr.Start(t.Context()), events.ErrShutDown)
	}
	assert.Equal(t, 2, starts, "a manager without a broadcaster does not start")
}
