package tracker

import (
	"cmp"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/series"
)

// Options of a [Tracker]. The zero value stands for the defaults. Package events documents and
// validates them.
type Options struct {
	Shared            bool          // continue the series of every process of the controller; their keys have no ReportingInstance
	FinishAfter       time.Duration // if zero, 6 minutes
	MaxWindow         time.Duration // if zero, 36 minutes; at least FinishAfter
	HeartbeatInterval time.Duration // if zero, half of EventTTL
	FirstHeartbeat    time.Duration // if zero, HeartbeatInterval
	EventTTL          time.Duration // if zero, one hour
	Capacity          int           // if zero, 65536
	ClusterNamespace  string        // if empty, "kube-system"
	Workers           int           // requests in flight that take at most 100 ms; if zero, no limit

	// Seed is what is random in a tracker follows from, so that a test can repeat a history. If
	// zero, it differs in each tracker.
	Seed uint64

	// Jitter changes the delay after a failed request. If nil, delays stay as they are.
	Jitter func(time.Duration) time.Duration
}

// WithDefaults returns the options that o stands for.
func (o Options) WithDefaults() Options {
	o.FinishAfter = cmp.Or(o.FinishAfter, series.FinishAfter)
	o.MaxWindow = max(cmp.Or(o.MaxWindow, DefaultMaxWindow), o.FinishAfter)
	o.EventTTL = cmp.Or(o.EventTTL, time.Hour)
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, max(o.EventTTL/2, 1))
	o.Capacity = cmp.Or(o.Capacity, 65536)
	o.Workers = cmp.Or(o.Workers, math.MaxInt32)
	o.ClusterNamespace = cmp.Or(o.ClusterNamespace, metav1.NamespaceSystem)
	return o
}

// batch is how many steps of one kind are made before others have their turn, such as those under one
// lock.
const batch = 256

// DefaultMaxWindow is the longest quiet window. A loop that backs off to 1,000 seconds needs 35 minutes.
const DefaultMaxWindow = 36 * time.Minute

// DropReason says why occurrences were lost. The zero value is no reason.
type DropReason string

// The reasons for which a tracker, or its caller, drops occurrences. DropReason of package events
// documents them.
const (
	DropTableFull            DropReason = "TableFull"
	DropDenied               DropReason = "Denied"
	DropUnavailable          DropReason = "Unavailable"
	DropInvalidObject        DropReason = "InvalidObject"
	DropInvalidType          DropReason = "InvalidType"
	DropRejected             DropReason = "Rejected"
	DropNamespaceNotFound    DropReason = "NamespaceNotFound"
	DropNamespaceTerminating DropReason = "NamespaceTerminating"
	DropNameTaken            DropReason = "NameTaken"
	DropShutdown             DropReason = "Shutdown"
)

// Losses are all reasons.
var Losses = []DropReason{
	DropTableFull, DropDenied, DropUnavailable, DropInvalidObject, DropInvalidType, DropRejected,
	DropNamespaceNotFound, DropNamespaceTerminating, DropNameTaken, DropShutdown,
}

// Drop is a loss: occurrences that are on no server and never will be.
type Drop struct {
	Reason DropReason // why
	Key    series.Key // of the series
	Note   string     // of the lost occurrence, or of the first one if there are several
	Count  int        // number of lost occurrences
}
