package tracker

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of Options.
const (
	DefaultWindow       = 6 * time.Minute
	DefaultCapacity     = 65536
	DefaultNoteInterval = 10 * time.Second
	DefaultEventTTL     = time.Hour
	DefaultHeartbeat    = 30 * time.Minute
)

// Options of a Table. The zero value is the default.
type Options struct {
	// Window is how long after an occurrence the next one belongs to the same
	// series. One that comes exactly a window later does not. If zero,
	// DefaultWindow.
	Window time.Duration

	// Capacity is the number of series that take occurrences. As many again may
	// wait for their last write after they have ended. If zero, DefaultCapacity.
	Capacity int

	// NoteInterval is how often the note of a running series is looked at, for
	// formatting it is what an occurrence would otherwise cost most by. If zero,
	// DefaultNoteInterval.
	NoteInterval time.Duration

	// EventTTL is how long the API server keeps an Event after its last write,
	// as kube-apiserver's --event-ttl says. So long the name of a series that has
	// ended is taken. If zero, DefaultEventTTL.
	EventTTL time.Duration

	// Heartbeat is the time between two writes of a running series. The table only
	// wants to know after which silence a series of an earlier process is dead: a
	// Heartbeat and a Window. If zero, DefaultHeartbeat.
	Heartbeat time.Duration

	// ShareInstances says that keys have no ReportingInstance, so that every
	// process of a controller goes on with the series of the one before it.
	ShareInstances bool

	// ClusterNamespace is where Events about cluster-scoped objects are put. The
	// API server allows "kube-system" and "default"
	// (legacyValidateEvent in kube-apiserver). If empty, "kube-system", the
	// NamespaceSystem of the design.
	ClusterNamespace string
}

// Validate returns an error that names the first option that cannot be used, and
// its value.
func (o Options) Validate() error {
	switch {
	case o.Window < 0:
		return fmt.Errorf("series: Window %v is negative", o.Window)
	case o.Capacity < 0:
		return fmt.Errorf("series: Capacity %d is negative", o.Capacity)
	case o.NoteInterval < 0:
		return fmt.Errorf("series: NoteInterval %v is negative", o.NoteInterval)
	case o.Heartbeat < 0:
		return fmt.Errorf("series: Heartbeat %v is negative", o.Heartbeat)
	case o.EventTTL < 0:
		return fmt.Errorf("series: EventTTL %v is negative", o.EventTTL)
	}
	switch o.ClusterNamespace {
	case "", metav1.NamespaceSystem, metav1.NamespaceDefault:
		return nil
	default:
		return fmt.Errorf("series: ClusterNamespace is %q; the API server takes %q and %q", o.ClusterNamespace, metav1.NamespaceSystem, metav1.NamespaceDefault)
	}
}

func (o Options) withDefaults() Options {
	o.Window = cmp.Or(o.Window, DefaultWindow)
	o.Capacity = cmp.Or(o.Capacity, DefaultCapacity)
	o.NoteInterval = cmp.Or(o.NoteInterval, DefaultNoteInterval)
	o.EventTTL = cmp.Or(o.EventTTL, DefaultEventTTL)
	o.Heartbeat = cmp.Or(o.Heartbeat, DefaultHeartbeat)
	o.ClusterNamespace = cmp.Or(o.ClusterNamespace, metav1.NamespaceSystem)
	return o
}
