package controllerruntime

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/eventseries/eventseries/events"
)

// NewCluster takes the place of [sigs.k8s.io/controller-runtime/pkg/cluster.New], for
// programs that emit events to a cluster that is not the one of their manager. The
// recorders of the cluster emit to broadcaster.
//
// Add the cluster to a manager, which stops it after the reconcilers. Start starts
// broadcaster before the cluster, and shuts it down after the cluster. In the scope
// [events.SameController], Start does not start broadcaster, because clusters start before
// this replica becomes leader: add broadcaster to the manager, too. Start logs each event
// once, as that of [NewManager] does, to the logger of the cluster.
//
// If broadcaster is nil, NewCluster creates one as [NewManager] does, which writes to the
// API server of config with the HTTP client of the cluster. The option EventBroadcaster is that of [NewManager].
func NewCluster(config *rest.Config, broadcaster *events.Broadcaster, opts ...cluster.Option) (cluster.Cluster, error) {
	if config == nil {
		return nil, errors.New("controllerruntime: config is nil")
	}
	var options cluster.Options
	c, err := cluster.New(config, append(opts[:len(opts):len(opts)], func(o *cluster.Options) {
		options = *o
		o.EventBroadcaster = nil //nolint:staticcheck // as in NewManager
	})...)
	if err != nil {
		return nil, err
	}
	r, err := newRecording(config, c.GetHTTPClient(), broadcaster, options.EventBroadcaster) //nolint:staticcheck // programs use it
	if err != nil {
		return nil, err
	}
	if options.Logger.GetSink() == nil {
		options.Logger = log.Log.WithName("controller-runtime").WithName("cluster") // the default of cluster.New
	}
	r.logger = options.Logger.WithName("events")
	p, err := r.provider(c.GetScheme())
	if err != nil {
		return nil, err
	}
	return recordingCluster{runningCluster{c, r}, p}, nil
}

// recordingCluster is a cluster. The methods of the Provider replace those of the Cluster,
// which is embedded more deeply.
type recordingCluster struct {
	runningCluster
	recorder.Provider
}

type runningCluster struct {
	cluster.Cluster
	recording *recording
}

// Start implements [cluster.Cluster].
func (c runningCluster) Start(ctx context.Context) error {
	return c.recording.run(ctx, c.Cluster.Start)
}
