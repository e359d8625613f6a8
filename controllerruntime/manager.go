package controllerruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/eventseries/eventseries/events"
)

// defaultRenewDeadline is the default of [manager.Options].RenewDeadline.
const defaultRenewDeadline = 10 * time.Second

// NewManager takes the place of [sigs.k8s.io/controller-runtime.NewManager]. The
// recorders of the manager emit to broadcaster. See [Wrap] for what else changes.
//
// If broadcaster is nil, NewManager creates one that writes to the API server of config, with
// whichever role the program has; see [compat.Sink]. So that Events are as recent as those of
// the legacy recorder, and in the same namespaces, its options are those of [compat.WithDefaults].
// Unlike those, a manager lists, because its role is its own, and can grant that.
//
// These options have an effect on events:
//
//   - Leader election emits to broadcaster, too. With LeaderElectionConfig, its events go to
//     the API server of that configuration, through another broadcaster, which the manager
//     creates, starts, and shuts down. With LeaderElectionResourceLockInterface, they go
//     wherever the lock sends them; see [ResourceLock].
//   - EventBroadcaster is usually nil. It can be a *compat.Broadcaster, to set options of
//     legacy recorders, or the *record.Broadcaster of package compat/record of a program
//     that has one. If broadcaster is not nil, it must be the one to which this broadcaster
//     emits. NewManager returns an error for other types. A *record.Broadcaster writes to
//     the API server of config, unless the program has started it with another sink.
//   - GracefulShutdownTimeout, if it is set, limits how long Start waits for the last
//     writes, but not to less than a second.
func NewManager(config *rest.Config, options manager.Options, broadcaster *events.Broadcaster) (manager.Manager, error) {
	if config == nil {
		return nil, errors.New("controllerruntime: config is nil")
	}
	r, err := newRecording(config, nil, broadcaster, options.EventBroadcaster) //nolint:staticcheck // programs use it
	if err != nil {
		return nil, err
	}
	// If it is set, controller-runtime makes broadcasters that it does not shut down.
	options.EventBroadcaster = nil //nolint:staticcheck // see above
	if timeout := options.GracefulShutdownTimeout; timeout != nil && *timeout >= 0 {
		r.limit = max(*timeout, failureGrace)
	}
	if options.LeaderElection && options.LeaderElectionResourceLockInterface == nil {
		election, leaseConfig := r, config
		if options.LeaderElectionConfig != nil {
			leaseConfig = options.LeaderElectionConfig
			if election, err = newRecording(leaseConfig, nil, nil, nil); err != nil {
				return nil, err
			}
			r.broadcasters = append(r.broadcasters, election.broadcasters...)
		}
		if options.LeaderElectionResourceLockInterface, err = election.lock(leaseConfig, options); err != nil {
			return nil, err
		}
	}
	mgr, err := manager.New(config, options)
	if err != nil {
		return nil, err
	}
	return r.wrap(mgr)
}

// Wrap returns a manager that does what mgr does, with recorders of broadcaster. Use it
// if other code creates the manager; otherwise use [NewManager]. Use the result in place
// of mgr everywhere.
//
//   - GetEventRecorder and GetEventRecorderFor return recorders of broadcaster.
//   - Start starts broadcaster before the manager, and shuts it down after the manager.
//     In the scope [events.SameController], the broadcaster starts when this replica
//     becomes leader.
//   - Start logs each event once, to the manager's logger with the name "events" at
//     V(1), unless this level is disabled.
//
// A manager has created its leader election before Wrap is called. To receive the events
// of leader election, too, create the manager with the lock of [ResourceLock].
//
// If broadcaster is nil, Wrap creates one, as NewManager does, with mgr.GetConfig().
func Wrap(mgr manager.Manager, broadcaster *events.Broadcaster) (manager.Manager, error) {
	r, err := newRecording(mgr.GetConfig(), mgr.GetHTTPClient(), broadcaster, nil)
	if err != nil {
		return nil, err
	}
	return r.wrap(mgr)
}

// ResourceLock returns the value of Options.LeaderElectionResourceLockInterface for a
// manager with the given options. It is the lock that the manager would create, but its
// events go to broadcaster. config is that of the cluster with the lease:
// Options.LeaderElectionConfig, or that of the manager.
//
// The caller passes the manager to [Wrap] with the same broadcaster. If Wrap receives
// another one, the caller adds the broadcaster to the manager, and shuts it down when the
// manager has returned.
func ResourceLock(config *rest.Config, options manager.Options, broadcaster *events.Broadcaster) (resourcelock.Interface, error) {
	switch {
	case config == nil:
		return nil, errors.New("controllerruntime: config is nil")
	case broadcaster == nil:
		return nil, errors.New("controllerruntime: broadcaster is nil")
	}
	r, err := newRecording(config, nil, broadcaster, nil)
	if err != nil {
		return nil, err
	}
	options.LeaderElection = true
	return r.lock(config, options)
}

// lock returns a lock of leader election that emits to the recording.
func (r *recording) lock(config *rest.Config, options manager.Options) (resourcelock.Interface, error) {
	p, err := r.provider(cmp.Or(options.Scheme, scheme.Scheme))
	if err != nil {
		return nil, err
	}
	renewDeadline := defaultRenewDeadline
	if options.RenewDeadline != nil {
		renewDeadline = *options.RenewDeadline
	}
	return leaderelection.NewResourceLock(config, p, leaderelection.Options{
		LeaderElection:             options.LeaderElection,
		LeaderElectionResourceLock: options.LeaderElectionResourceLock,
		LeaderElectionID:           options.LeaderElectionID,
		LeaderElectionNamespace:    options.LeaderElectionNamespace,
		RenewDeadline:              renewDeadline,
		LeaderLabels:               options.LeaderElectionLabels,
	})
}

// recordingManager is a manager. The methods of the Provider replace those of the Manager,
// which is embedded more deeply.
type recordingManager struct {
	runningManager
	recorder.Provider
}

type runningManager struct {
	manager.Manager
	recording *recording
}

// Start implements [manager.Manager].
func (m runningManager) Start(ctx context.Context) error {
	return m.recording.run(ctx, m.Manager.Start)
}

// wrap returns a manager that runs with the recording.
func (r *recording) wrap(mgr manager.Manager) (manager.Manager, error) {
	p, err := r.provider(mgr.GetScheme())
	if err != nil {
		return nil, err
	}
	r.logger = mgr.GetLogger().WithName("events")
	if broadcaster := r.broadcasters[0]; broadcaster.NeedLeaderElection() {
		// A runnable that does not say otherwise starts on the leader.
		start := manager.RunnableFunc(func(ctx context.Context) error { return r.start(ctx, broadcaster) })
		if err := mgr.Add(start); err != nil {
			return nil, fmt.Errorf("controllerruntime: add the broadcaster to the manager: %w", err)
		}
	}
	return recordingManager{runningManager{mgr, r}, p}, nil
}
