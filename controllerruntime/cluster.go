package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
)

// NewCluster takes the place of [sigs.k8s.io/controller-runtime/pkg/cluster.New], for
// programs that emit events to a cluster that is not the one of their manager. The
// recorders of the cluster emit to broadcaster.
//
// Add the cluster to a manager, which stops it after the reconcilers. Start starts
// broadcaster before the cluster, and shuts it down after the cluster. In the scope
// [events.SameController], Start does not start broadcaster, because clusters start before
// this replica becomes leader: add broadcaster to the manager, too.
//
// If broadcaster is nil, NewCluster creates one with default options, which writes to the
// API server of config, with whichever role the program has; see [compat.Sink].
func NewCluster(config *rest.Config, broadcaster *events.Broadcaster, opts ...cluster.Option) (cluster.Cluster, error) {
	if config == nil {
		return nil, errors.New("controllerruntime: config is nil")
	}
	broadcaster, err := orDefault(broadcaster, config)
	if err != nil {
		return nil, err
	}
	c, err := cluster.New(config, opts...)
	if err != nil {
		return nil, err
	}
	return withClusterRecorder(&recordingCluster{Cluster: c, broadcaster: broadcaster}, c.GetEventRecorder)
}

// recordingCluster is a cluster without its GetEventRecorder.
type recordingCluster struct {
	cluster.Cluster
	broadcaster *events.Broadcaster
}

// GetEventRecorderFor returns a legacy recorder that emits to the broadcaster.
func (c *recordingCluster) GetEventRecorderFor(name string) record.EventRecorder {
	return compat.NewBroadcasterFor(c.broadcaster, compat.Options{}).NewRecorder(c.GetScheme(), corev1.EventSource{Component: name})
}

// Start implements [cluster.Cluster].
func (c *recordingCluster) Start(ctx context.Context) error {
	defer c.broadcaster.Shutdown()
	if !c.broadcaster.NeedLeaderElection() {
		if err := start(ctx, c.broadcaster, log.FromContext(ctx).WithName("events")); err != nil {
			return err
		}
	}
	return c.Cluster.Start(ctx)
}

// start starts a broadcaster, unless the user has. It ignores the end of ctx: reconcilers
// emit events until their manager returns.
func start(ctx context.Context, broadcaster *events.Broadcaster, logger logr.Logger) error {
	ctx = logr.NewContext(context.WithoutCancel(ctx), logger)
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil && !errors.Is(err, events.ErrStarted) {
		return fmt.Errorf("controllerruntime: start the broadcaster: %w", err)
	}
	return nil
}

// clusterWithRecorder is a cluster. Its GetEventRecorder returns the type that the
// installed version of controller-runtime requires, as that of [withRecorder].
type clusterWithRecorder[R any] struct{ *recordingCluster }

// GetEventRecorder returns a recorder that emits to the broadcaster.
func (c clusterWithRecorder[R]) GetEventRecorder(name string) R {
	recorder := c.broadcaster.NewRecorderWithOptions(c.GetScheme(), name, events.RecorderOptions{})
	return any(recorder).(R)
}

// withClusterRecorder completes c. It infers R from a method of the cluster.
func withClusterRecorder[R any](c *recordingCluster, _ func(name string) R) (cluster.Cluster, error) {
	complete, ok := any(clusterWithRecorder[R]{c}).(cluster.Cluster)
	if err := implemented[R](ok); err != nil {
		return nil, err
	}
	return complete, nil
}

// implemented returns an error if a manager or a cluster is not complete, or if the
// recorders of package events do not implement R.
func implemented[R any](complete bool) error {
	if want := reflect.TypeFor[R](); !complete || !reflect.TypeFor[events.Recorder]().Implements(want) {
		return fmt.Errorf("controllerruntime: this version of controller-runtime has unknown recorders: %s", want)
	}
	return nil
}
