package controllerruntime

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/metrics"
)

// BroadcasterOptions configure the broadcaster of a manager. The zero value has the defaults.
type BroadcasterOptions struct {
	// Events are the options of the broadcaster. The defaults of HeartbeatInterval,
	// FirstHeartbeat, and ClusterNamespace are those of [NewManager].
	Events events.Options
	// HTTPClient sends the requests, such as the result of mgr.GetHTTPClient(). If it is nil,
	// config determines the client, which shares its connections with that of a manager with
	// the same config.
	HTTPClient *http.Client
	// Registerer receives the metrics of the broadcaster, such as metrics.Registry of
	// controller-runtime. If it is nil, nothing does. To tell the broadcasters of a process
	// apart, give each the result of [prometheus.WrapRegistererWith] with the same labels.
	Registerer prometheus.Registerer
}

// NewBroadcaster returns a broadcaster for [NewManager], [Wrap], [ResourceLock], or
// [NewCluster]. It writes to the API server of config, with whichever role the program has;
// see [compat.Sink]. It returns an error if config is invalid, or if the metrics are registered
// already.
func NewBroadcaster(config *rest.Config, options BroadcasterOptions) (*events.Broadcaster, error) {
	if config == nil {
		return nil, errors.New("controllerruntime: config is nil")
	}
	clientset, err := newClientset(config, options.HTTPClient)
	if err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcasterWithOptions(compat.NewSink(clientset), withDefaults(options.Events))
	if options.Registerer == nil {
		return broadcaster, nil
	}
	if err := options.Registerer.Register(metrics.NewCollector(broadcaster, metrics.Options{})); err != nil {
		broadcaster.Shutdown()
		return nil, fmt.Errorf("controllerruntime: register the metrics of the broadcaster: %w", err)
	}
	return broadcaster, nil
}

// NewBroadcasterOrDie is [NewBroadcaster], and panics if that returns an error. Use it in main,
// like [k8s.io/client-go/kubernetes.NewForConfigOrDie].
func NewBroadcasterOrDie(config *rest.Config, options BroadcasterOptions) *events.Broadcaster {
	broadcaster, err := NewBroadcaster(config, options)
	if err != nil {
		panic(err)
	}
	return broadcaster
}
