package controllerruntime_test

import (
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/eventseries/eventseries/controllerruntime"
	"github.com/eventseries/eventseries/events"
	eventmetrics "github.com/eventseries/eventseries/events/metrics"
)

// The main function of a controller changes in one line.
func ExampleNewManager() {
	mgr, err := controllerruntime.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{}, nil) // was ctrl.NewManager
	if err != nil {
		os.Exit(1)
	}
	recorder := mgr.GetEventRecorder("example.com/backup-controller") // as before
	_ = recorder                                                      // pass it to a reconciler
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1) // the events are written
	}
}

// Options, and metrics in the registry that the manager serves.
func ExampleNewBroadcasterOrDie() {
	config := ctrl.GetConfigOrDie()
	eventOptions := controllerruntime.BroadcasterOptions{Events: events.Options{Capacity: 1000}, Registerer: metrics.Registry}
	mgr, err := controllerruntime.NewManager(config, ctrl.Options{}, controllerruntime.NewBroadcasterOrDie(config, eventOptions)) // was ctrl.NewManager
	if err != nil {
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}

// Metrics by reason. The options have no registerer: a registry has the metrics once.
func ExampleNewBroadcasterOrDie_byReason() {
	config := ctrl.GetConfigOrDie()
	broadcaster := controllerruntime.NewBroadcasterOrDie(config, controllerruntime.BroadcasterOptions{})
	metrics.Registry.MustRegister(eventmetrics.NewCollector(broadcaster, eventmetrics.Options{ByReason: true}))
	mgr, err := controllerruntime.NewManager(config, ctrl.Options{}, broadcaster)
	if err != nil {
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}

// Other code creates the manager, here manager.New.
func ExampleWrap() {
	config := ctrl.GetConfigOrDie()
	broadcaster := controllerruntime.NewBroadcasterOrDie(config, controllerruntime.BroadcasterOptions{})

	options := ctrl.Options{LeaderElection: true, LeaderElectionID: "backup-controller"}
	lock, err := controllerruntime.ResourceLock(config, options, broadcaster)
	if err != nil {
		os.Exit(1)
	}
	options.LeaderElectionResourceLockInterface = lock
	mgr, err := manager.New(config, options)
	if err != nil {
		os.Exit(1)
	}
	mgr, err = controllerruntime.Wrap(mgr, broadcaster)
	if err != nil {
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}

// The recorders of another cluster emit series, too.
func ExampleNewCluster() {
	mgr, err := controllerruntime.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{}, nil)
	if err != nil {
		os.Exit(1)
	}
	config := ctrl.GetConfigOrDie()                          // of the other cluster
	remote, err := controllerruntime.NewCluster(config, nil) // was cluster.New
	if err != nil {
		os.Exit(1)
	}
	if err := mgr.Add(remote); err != nil {
		os.Exit(1)
	}
	recorder := remote.GetEventRecorder("example.com/backup-controller")
	_ = recorder // pass it to a reconciler
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}
