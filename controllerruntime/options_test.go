package controllerruntime

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	legacyrecord "k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/compat/record"
	"github.com/eventseries/eventseries/events"
)

// constructor makes a manager that runs on config.
type constructor = func(config *rest.Config, options manager.Options) (manager.Manager, error)

func newOurs(config *rest.Config, options manager.Options) (manager.Manager, error) {
	return NewManager(config, options, nil)
}

// withLegacy is NewManager with an EventBroadcaster.
func withLegacy(newBroadcaster func(*rest.Config) legacyrecord.EventBroadcaster) constructor {
	return func(config *rest.Config, options manager.Options) (manager.Manager, error) {
		options.EventBroadcaster = newBroadcaster(config) //nolint:staticcheck // tested here
		return NewManager(config, options, nil)
	}
}

func newCompat(config *rest.Config) legacyrecord.EventBroadcaster {
	return compat.NewBroadcaster(compat.NewSink(kubernetes.NewForConfigOrDie(config)))
}

func newRecord(*rest.Config) legacyrecord.EventBroadcaster { return record.NewBroadcaster() }

// newWrapped wraps a manager of controller-runtime with our lock.
func newWrapped(config *rest.Config, options manager.Options) (manager.Manager, error) {
	var broadcasters []*events.Broadcaster
	broadcaster := func(config *rest.Config) *events.Broadcaster {
		b := events.NewBroadcaster(compat.NewSink(kubernetes.NewForConfigOrDie(config)))
		broadcasters = append(broadcasters, b)
		return b
	}
	own := broadcaster(config)
	if options.LeaderElection && options.LeaderElectionResourceLockInterface == nil {
		leaseConfig, election := config, own
		if options.LeaderElectionConfig != nil {
			leaseConfig = options.LeaderElectionConfig
			election = broadcaster(leaseConfig)
		}
		var err error
		if options.LeaderElectionResourceLockInterface, err = ResourceLock(leaseConfig, options, election); err != nil {
			return nil, err
		}
	}
	mgr, err := manager.New(config, options)
	if err != nil {
		return nil, err
	}
	wrapped, err := Wrap(mgr, own)
	if err != nil || len(broadcasters) == 1 {
		return wrapped, err
	}
	return electedElsewhere{wrapped, broadcasters[1]}, mgr.Add(broadcasters[1])
}

// electedElsewhere is a manager whose leader election has a broadcaster of its own.
type electedElsewhere struct {
	manager.Manager
	election *events.Broadcaster
}

func (m electedElsewhere) Start(ctx context.Context) error {
	defer m.election.Shutdown()
	return m.Manager.Start(ctx)
}

// outcome is what a program does on a server, apart from the end of its leadership, which
// controller-runtime can lose.
type outcome struct {
	Attempted, Written []string // the notes of Events
	EventAgents        []string // user agents of requests for Events
	Leases             []string // requests for a new lease: namespace, name, labels, user agent, timeout
}

// run runs a program with a manager: its recorders emit, and it leads if it can. Then it
// returns the error of the constructor, or what has happened on the hub and on the spoke.
func run(t *testing.T, newManager constructor, options func(spoke *rest.Config) manager.Options, denied, leads bool) (hub, spoke outcome, err error) {
	t.Helper()
	servers := []*fakeServer{newFakeServer(), newFakeServer()}
	servers[0].denied = denied
	opts := options(servers[1].config())
	opts.Metrics = server.Options{BindAddress: "0"}
	if opts.Scheme == nil { // controller-runtime adds types to the scheme, and client-go's is shared
		opts.Scheme = runtime.NewScheme()
		require.NoError(t, scheme.AddToScheme(opts.Scheme))
	}
	config := servers[0].config()
	config.UserAgent = "program"
	mgr, err := newManager(config, opts)
	if err != nil {
		return hub, spoke, err
	}
	recorder, legacy := mgr.GetEventRecorder("example.com/new"), mgr.GetEventRecorderFor("example.com/old") //nolint:staticcheck // tested here
	ctx, cancel := context.WithCancel(t.Context())
	want := []string{"from a recorder", "from a legacy recorder"}
	if leads {
		want = append(want, "became leader")
	}
	require.NoError(t, mgr.Add(manager.RunnableFunc(func(context.Context) error {
		defer cancel()
		recorder.Eventf(pod, nil, "Warning", "Tested", "Testing", "from a recorder")
		legacy.Event(pod, "Warning", "Legacy", "from a legacy recorder")
		for _, note := range want {
			select {
			case <-servers[0].attempt(note):
			case <-servers[1].attempt(note):
			case <-time.After(time.Minute):
				assert.Fail(t, "no request for the event "+note)
			}
		}
		return nil
	})))
	require.NoError(t, mgr.Start(ctx))
	return servers[0].outcome(), servers[1].outcome(), nil
}

// Each option of a manager that concerns events, clients, or leader election does what it
// does in controller-runtime.
func TestOptionsOfManagers(t *testing.T) {
	electing := func(change func(o *manager.Options, spoke *rest.Config)) func(*rest.Config) manager.Options {
		return func(spoke *rest.Config) manager.Options {
			o := manager.Options{LeaderElection: true, LeaderElectionID: "leader", LeaderElectionNamespace: "shop"}
			change(&o, spoke)
			return o
		}
	}
	elsewhere := func(o *manager.Options, spoke *rest.Config) { o.LeaderElectionConfig = spoke }
	lockOf := func(spoke *rest.Config) resourcelock.Interface {
		clients := kubernetes.NewForConfigOrDie(spoke)
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, "shop", "own", clients.CoreV1(), clients.CoordinationV1(),
			resourcelock.ResourceLockConfig{Identity: "me", EventRecorder: legacyrecord.NewFakeRecorder(10)})
		require.NoError(t, err)
		return lock
	}
	second, minute, twoMinutes := time.Second, time.Minute, 2*time.Minute
	for name, tt := range map[string]struct {
		options       func(spoke *rest.Config) manager.Options
		denied, leads bool
		fails         bool
	}{
		"none":                      {options: func(*rest.Config) manager.Options { return manager.Options{} }},
		"of leader election, unset": {options: electing(func(o *manager.Options, spoke *rest.Config) { o.LeaderElection, o.LeaderElectionConfig = false, spoke })},
		"LeaderElection":            {options: electing(func(*manager.Options, *rest.Config) {}), leads: true},
		"LeaderElection, denied":    {options: electing(func(*manager.Options, *rest.Config) {}), leads: true, denied: true},
		"LeaderElectionConfig":      {options: electing(elsewhere), leads: true},
		"LeaderElectionConfig, hub denied": {
			options: electing(elsewhere), leads: true, denied: true,
		},
		"LeaderElectionConfig with a user agent": {leads: true, options: electing(func(o *manager.Options, spoke *rest.Config) {
			o.LeaderElectionConfig = rest.CopyConfig(spoke)
			o.LeaderElectionConfig.UserAgent = "elector"
		})},
		"LeaderElectionConfig with an own scheme": {leads: true, options: electing(func(o *manager.Options, spoke *rest.Config) {
			o.LeaderElectionConfig, o.Scheme = spoke, runtime.NewScheme()
		})},
		"Scheme": {leads: true, options: electing(func(o *manager.Options, _ *rest.Config) { o.Scheme = runtime.NewScheme() })},
		"LeaderElectionLabels": {leads: true, options: electing(func(o *manager.Options, _ *rest.Config) {
			o.LeaderElectionLabels = map[string]string{"team": "a"}
		})},
		"LeaderElectionNamespace and LeaderElectionID": {leads: true, options: electing(func(o *manager.Options, _ *rest.Config) {
			o.LeaderElectionNamespace, o.LeaderElectionID = "other", "another"
		})},
		"RenewDeadline": {leads: true, options: electing(func(o *manager.Options, _ *rest.Config) {
			o.RenewDeadline, o.LeaseDuration, o.RetryPeriod = &minute, &twoMinutes, &second
		})},
		"LeaderElectionResourceLockInterface": {options: electing(func(o *manager.Options, spoke *rest.Config) {
			o.LeaderElectionResourceLockInterface = lockOf(spoke)
		})},
		"LeaderElectionResourceLockInterface and LeaderElectionConfig": {options: electing(func(o *manager.Options, spoke *rest.Config) {
			o.LeaderElectionResourceLockInterface, o.LeaderElectionConfig = lockOf(spoke), newFakeServer().config()
		})},
		"LeaderElectionResourceLockInterface without LeaderElection": {options: func(spoke *rest.Config) manager.Options {
			return manager.Options{LeaderElectionResourceLockInterface: lockOf(spoke)}
		}},
		"LeaderElectionID missing":           {fails: true, options: electing(func(o *manager.Options, _ *rest.Config) { o.LeaderElectionID = "" })},
		"LeaderElectionNamespace missing":    {fails: true, options: electing(func(o *manager.Options, _ *rest.Config) { o.LeaderElectionNamespace = "" })},
		"LeaderElectionResourceLock unknown": {fails: true, options: electing(func(o *manager.Options, _ *rest.Config) { o.LeaderElectionResourceLock = "endpoints" })},
		"LeaderElectionResourceLock":         {leads: true, options: electing(func(o *manager.Options, _ *rest.Config) { o.LeaderElectionResourceLock = "leases" })},
	} {
		t.Run(name, func(t *testing.T) {
			wantHub, wantSpoke, wantErr := run(t, manager.New, tt.options, tt.denied, tt.leads)
			require.Equal(t, tt.fails, wantErr != nil)
			for name, newManager := range map[string]constructor{
				"NewManager": newOurs, "with compat": withLegacy(newCompat), "with compat/record": withLegacy(newRecord), "wrapped": newWrapped,
			} {
				hub, spoke, err := run(t, newManager, tt.options, tt.denied, tt.leads)
				assert.Equal(t, wantHub, hub, name)
				assert.Equal(t, wantSpoke, spoke, name)
				if wantErr != nil {
					assert.EqualError(t, err, wantErr.Error(), name)
				}
			}
		})
	}
}

func TestBrokenLeaderElectionConfig(t *testing.T) {
	broken := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: []byte("none")}}
	for _, newManager := range []constructor{manager.New, newOurs} {
		own := runtime.NewScheme() // the manager adds to it, while others read client-go's
		require.NoError(t, scheme.AddToScheme(own))
		_, err := newManager(newFakeServer().config(), manager.Options{
			Scheme: own, LeaderElection: true, LeaderElectionConfig: broken, LeaderElectionID: "leader", LeaderElectionNamespace: "shop",
		})
		assert.ErrorContains(t, err, "unable to load root certificates")
	}
}

// The shutdown of events takes its part of the time that a manager has.
func TestGracefulShutdownTimeout(t *testing.T) {
	for _, tt := range []struct{ timeout, atLeast, atMost time.Duration }{
		{-1, 5 * time.Second, 10 * time.Second}, // that of the broadcaster
		{time.Minute, 5 * time.Second, 10 * time.Second},
		{3 * time.Second, 3 * time.Second, 3 * time.Second},
		{0, failureGrace, failureGrace},
	} {
		synctest.Test(t, func(t *testing.T) {
			broadcaster := newSlow(t, events.Options{})
			mgr, err := NewManager(newFakeServer().config(), manager.Options{
				Metrics: server.Options{BindAddress: "0"}, GracefulShutdownTimeout: &tt.timeout,
			}, broadcaster)
			require.NoError(t, err)
			emitMany(mgr)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			begin := time.Now()
			require.NoError(t, mgr.Start(ctx))
			took := time.Since(begin)
			assert.GreaterOrEqual(t, took, tt.atLeast)
			assert.LessOrEqual(t, took, tt.atMost)
			broadcaster.Shutdown() // waits
		})
	}
}

// controller-runtime writes events when they occur, even if the manager never starts.
func TestManagerThatNeverStarts(t *testing.T) {
	for _, tt := range []struct {
		newManager constructor
		written    bool
	}{{manager.New, true}, {newOurs, false}} {
		api := newFakeServer()
		mgr, err := tt.newManager(api.config(), manager.Options{Metrics: server.Options{BindAddress: "0"}})
		require.NoError(t, err)
		mgr.GetEventRecorder("example.com/test").Eventf(pod, nil, "Warning", "Tested", "Testing", "note")
		if tt.written {
			<-api.attempt("note")
		}
		assert.Equal(t, tt.written, isClosed(api.attempt("note")))
	}
}

// In the scope SameController, only the leader writes.
func TestRecordBroadcasterOfALeader(t *testing.T) {
	for _, leads := range []bool{true, false} {
		api := newFakeServer()
		broadcaster := record.NewBroadcaster(record.WithOptions(func(o *events.Options) { o.Scope, o.ReportingInstance = events.SameController, "replica-1" }))
		options := manager.Options{
			Metrics: server.Options{BindAddress: "0"}, LeaderElection: true, LeaderElectionID: "leader", LeaderElectionNamespace: "shop",
			EventBroadcaster: broadcaster, //nolint:staticcheck // tested here
		}
		if !leads {
			options.LeaderElectionResourceLockInterface = lost{}
		}
		mgr, err := NewManager(api.config(), options, nil)
		require.NoError(t, err)
		mgr.GetEventRecorder("example.com/test").Eventf(pod, nil, "Warning", "Tested", "Testing", "note")
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, mgr.Add(replica(func() {
			defer cancel()
			if leads {
				<-api.attempt("note")
			}
		})))
		require.NoError(t, mgr.Start(ctx))
		assert.Equal(t, leads, isClosed(api.attempt("note")))
	}
}

// replica is a runnable that each replica starts.
type replica func()

func (r replica) Start(context.Context) error { r(); return nil }
func (replica) NeedLeaderElection() bool      { return false }

// lost is the lock of another replica.
type lost struct{ resourcelock.Interface }

func (lost) Identity() string { return "me" }
func (lost) Describe() string { return "lost" }
func (lost) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: "other", LeaseDurationSeconds: 60}, []byte("other"), nil
}

// Programs with a manager for each test, or for each tenant, check for leaks. So do those
// that make managers and never start them.
func TestManagersLeaveNoGoroutines(t *testing.T) {
	electing := func(spoke *fakeServer) manager.Options {
		o := manager.Options{LeaderElection: true, LeaderElectionID: "leader", LeaderElectionNamespace: "shop", LeaderElectionReleaseOnCancel: true}
		if spoke != nil {
			o.LeaderElectionConfig = spoke.config()
		}
		return o
	}
	for name, newManager := range map[string]constructor{
		"controller-runtime": manager.New, "NewManager": newOurs, "wrapped": newWrapped,
		"with compat":        withLegacy(newCompat),
		"with compat/record": withLegacy(newRecord),
	} {
		for option, options := range map[string]func() manager.Options{
			"without options":      func() manager.Options { return manager.Options{} },
			"LeaderElection":       func() manager.Options { return electing(nil) },
			"LeaderElectionConfig": func() manager.Options { return electing(newFakeServer()) },
		} {
			if name == "controller-runtime" && option == "LeaderElectionConfig" {
				continue // it does not shut the broadcaster of leader election down
			}
			t.Run(name+" "+option, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					for i := range 20 {
						opts := options()
						opts.Metrics = server.Options{BindAddress: "0"}
						mgr, err := newManager(newFakeServer().config(), opts)
						require.NoError(t, err)
						if i%4 == 0 {
							continue
						}
						ctx, cancel := context.WithCancel(t.Context())
						require.NoError(t, mgr.Add(manager.RunnableFunc(func(context.Context) error { cancel(); return nil })))
						require.NoError(t, mgr.Start(ctx))
					}
					// The bubble deadlocks if a goroutine remains.
				})
			})
		}
	}
}

func newOurCluster(config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
	return NewCluster(config, nil, opts...)
}

// Each option of a cluster that concerns events or clients does what it does in
// controller-runtime.
func TestOptionsOfClusters(t *testing.T) {
	for name, option := range map[string]func(o *cluster.Options, spoke *fakeServer){
		"none":       func(*cluster.Options, *fakeServer) {},
		"HTTPClient": func(o *cluster.Options, spoke *fakeServer) { o.HTTPClient = &http.Client{Transport: spoke} },
		"Scheme":     func(o *cluster.Options, _ *fakeServer) { o.Scheme = runtime.NewScheme() },
		"EventBroadcaster": func(o *cluster.Options, _ *fakeServer) {
			o.EventBroadcaster = record.NewBroadcaster() //nolint:staticcheck // tested here
		},
	} {
		t.Run(name, func(t *testing.T) {
			var outcomes [2][2]outcome
			for i, newCluster := range []func(*rest.Config, ...cluster.Option) (cluster.Cluster, error){cluster.New, newOurCluster} {
				servers := [2]*fakeServer{newFakeServer(), newFakeServer()}
				c, err := newCluster(servers[0].config(), func(o *cluster.Options) { option(o, servers[1]) })
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- c.Start(ctx) }()
				c.GetEventRecorder("example.com/new").Eventf(pod, nil, "Warning", "Tested", "Testing", "from a recorder")
				c.GetEventRecorderFor("example.com/old").Event(pod, "Warning", "Legacy", "from a legacy recorder") //nolint:staticcheck // tested here
				for _, note := range []string{"from a recorder", "from a legacy recorder"} {
					select {
					case <-servers[0].attempt(note):
					case <-servers[1].attempt(note):
					}
				}
				cancel()
				require.NoError(t, <-ended)
				for j, s := range servers {
					outcomes[i][j] = s.outcome()
				}
			}
			assert.Equal(t, outcomes[0], outcomes[1])
		})
	}
}

func TestClustersLeaveNoGoroutines(t *testing.T) {
	for _, newCluster := range []func(*rest.Config, ...cluster.Option) (cluster.Cluster, error){cluster.New, newOurCluster} {
		synctest.Test(t, func(t *testing.T) {
			for i := range 20 {
				c, err := newCluster(newFakeServer().config(), func(o *cluster.Options) { o.Scheme = scheme.Scheme })
				require.NoError(t, err)
				if i%4 == 0 {
					continue
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				require.NoError(t, c.Start(ctx))
			}
			// The bubble deadlocks if a goroutine remains.
		})
	}
}

// sorted returns the strings in order, without duplicates.
func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// candidate shortens the notes of leader election, which begin with an identity.
func candidate(note string) string {
	for _, end := range []string{"became leader", "stopped leading"} {
		if strings.HasSuffix(note, " "+end) {
			return end
		}
	}
	return note
}
