package compat

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/events"
)

// The intervals of what replaces the legacy recorder, whose spam filter permits an event each 5
// minutes, and which few programs shut down.
const (
	legacyHeartbeat      = 5 * time.Minute
	legacyFirstHeartbeat = time.Second
)

// WithDefaults returns opts with the defaults of what replaces the legacy recorder in place of zero
// values. Package compat, compat/record, and controllerruntime use it.
//
//   - The first heartbeat comes after one second, because programs with legacy recorders often end
//     without Shutdown. Later ones come each 5 minutes, as often as client-go writes, or each half of
//     EventTTL if that is shorter.
//   - Events about cluster-scoped objects are in the namespace default, as in client-go.
//   - The recorder does not list, because no role for the legacy recorder grants that.
func WithDefaults(opts events.Options) events.Options {
	if opts.HeartbeatInterval == 0 {
		opts.HeartbeatInterval = max(legacyHeartbeat, opts.FirstHeartbeat)
		if opts.EventTTL > 0 {
			opts.HeartbeatInterval = min(opts.HeartbeatInterval, opts.EventTTL/2)
		}
	}
	opts.FirstHeartbeat = cmp.Or(opts.FirstHeartbeat, min(legacyFirstHeartbeat, opts.HeartbeatInterval))
	opts.ClusterNamespace = cmp.Or(opts.ClusterNamespace, metav1.NamespaceDefault)
	opts.List = cmp.Or(opts.List, ptr.To(false))
	return opts
}
