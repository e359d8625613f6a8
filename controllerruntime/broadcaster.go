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
	"github.com/eventseries/eventseries/internal/wiring"
)

// BroadcasterOptions configure the broadcaster of a manager. The zero value has the defaults.
type BroadcasterOptions struct {
	// Events are the options of the broadcaster. The defaults of HeartbeatInterval,
	// FirstHeartbeat, and ClusterNamespace are those of [compat.WithDefaults].
	Events events.Options
	// HTTPClient sends the requests, such as the result of mgr.GetHTTPClient(). If it is nil,
	// config determines the client, which shares its connections with that of a manager with
	// the same config.
	HTTPClient *http.Client
	// Registerer receives the metrics of the broadcaster, such as metrics.Registry of
	// controller-runtime, until the broadcaster shuts down. If it is nil, nothing does. To tell
	// the broadcasters of a process apart, give each the result of [prometheus.WrapRegistererWith] with
	// other values of the same labels.
	Registerer prometheus.Registerer
}

// NewBroadcaster returns a broadcaster for [NewManager], [Wrap], [ResourceLock], or
// [NewCluster]. It writes to the API server of config, with whichever role the program has;
// see [compat.Sink]. It returns an error if config or options are invalid, or if another broadcaster
// that is not shut down has registered its metrics.
func NewBroadcaster(config *rest.Config, options BroadcasterOptions) (*events.Broadcaster, error) {
	if config == nil {
		return nil, errors.New("controllerruntime: config is nil")
	}
	clientset, err := newClientset(config, options.HTTPClient)
	if err != nil {
		return nil, err
	}
	sink := &wiring.Sink{EventSink: compat.NewSink(clientset)}
	var collector prometheus.Collector
	if options.Registerer != nil {
		sink.Ended = func() { options.Registerer.Unregister(collector) }
	}
	broadcaster, err := events.New(sink, withDefaults(options.Events))
	if err != nil {
		return nil, err
	}
	if options.Registerer == nil {
		return broadcaster, nil
	}
	collector = metrics.NewCollector(broadcaster, metrics.Options{})
	if err := options.Registerer.Register(collector); err != nil {
		return nil, fmt.Errorf("controllerruntime: register the metrics of the broadcaster: %w; if another broadcaster has registered its metrics, "+
			"shut that one down, or give each the result of prometheus.WrapRegistererWith with a label", err)
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
