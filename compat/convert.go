package compat

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/internal/apigroup"
)

// ToCore converts an Event from events.k8s.io/v1 to core/v1. The API server stores
// each Event once and maps its fields in the same way:
//
//	regarding                 involvedObject
//	note                      message
//	reportingController       reportingComponent (Go: ReportingController)
//	deprecatedSource          source
//	deprecatedFirstTimestamp  firstTimestamp
//	deprecatedLastTimestamp   lastTimestamp
//	deprecatedCount           count
//
// All other fields have the same name in both groups. ToCore derives no field from
// another: an Event without deprecatedCount gets no count. [CoreSink] derives the
// deprecated fields when it writes.
//
// [FromCore] reverses ToCore without loss. If apiVersion and kind are set, they
// become those of core/v1. ToCore copies managedFields unchanged, as the server
// does: each entry names the group through which it was written.
//
// The result shares no memory with event. ToCore returns nil if event is nil.
func ToCore(event *eventsv1.Event) *corev1.Event { return apigroup.ToCore(event) }

// FromCore converts an Event from core/v1 to events.k8s.io/v1. It reverses [ToCore].
//
// A legacy Event, which has no eventTime, gets neither eventTime nor series. Its
// times and its count end up in the deprecated fields.
//
// The result shares no memory with event. FromCore returns nil if event is nil.
func FromCore(event *corev1.Event) *eventsv1.Event { return apigroup.FromCore(event) }
