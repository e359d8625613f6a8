// Package controllerruntime connects managers of controller-runtime to package events.
// It is a module of its own, so that programs without controller-runtime do not depend
// on it.
//
// # Usage
//
// Replace ctrl.NewManager by [NewManager]. Nothing else changes: reconcilers call
// mgr.GetEventRecorder or mgr.GetEventRecorderFor as before.
//
//	mgr, err := controllerruntime.NewManager(config, ctrl.Options{}, nil) // was ctrl.NewManager
//
// Without a broadcaster, NewManager creates one. Pass your own to set options, or to
// expose metrics:
//
//	options := controllerruntime.BroadcasterOptions{Events: events.Options{Capacity: 1000}, Registerer: metrics.Registry}
//	mgr, err := controllerruntime.NewManager(config, ctrl.Options{}, controllerruntime.NewBroadcasterOrDie(config, options))
//
// If other code creates the manager, use [Wrap] and [ResourceLock].
//
// # Guarantees
//
//   - GetEventRecorder, GetEventRecorderFor, and leader election emit to the same
//     broadcaster. With Options.LeaderElectionConfig, the events of leader election go to
//     the cluster of the lease, as in controller-runtime. The recorders of
//     GetEventRecorder also have AnnotatedEventf, with every version of
//     controller-runtime.
//   - The broadcaster accepts and writes events while the manager waits for reconcilers. Then
//     Start waits for the last writes, at most for events.Options.ShutdownTimeout, and for
//     Options.GracefulShutdownTimeout if that is set. The program need not call Shutdown,
//     and may call os.Exit after Start. No goroutine remains.
//   - If the manager fails, Start returns at most a second later than that of
//     controller-runtime, even if the server does not respond. So a replica that has
//     lost its lease exits before another one leads, unless LeaseDuration exceeds
//     RenewDeadline by less than that.
//   - The manager logs each event once, as controller-runtime does: with the name
//     "events" at V(1). If this level is disabled, logging costs nothing.
//
// # Limitations
//
//   - Managers do not share a broadcaster: each one starts its own and shuts it down.
//   - In the scope [events.SameController], events wait in memory until this replica
//     becomes leader. Emit events only in code that runs on the leader.
//   - The recorders of a cluster.Cluster that the program creates with cluster.New are
//     those of controller-runtime. [NewCluster] creates one whose recorders emit series.
//   - Events that are emitted before Start are written, but not logged.
//   - The broadcaster for Options.LeaderElectionConfig has default options, and its
//     statistics are not available. For your own, set
//     Options.LeaderElectionResourceLockInterface to a [ResourceLock].
//   - Managers before controller-runtime v0.23 have no GetEventRecorder. Set
//     Options.EventBroadcaster to a broadcaster of package compat instead.
package controllerruntime
