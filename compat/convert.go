package compat

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/internal/coreevents"
)

// ToCore returns an Event of events.k8s.io/v1 as core/v1 shows it: the API
// server keeps Events once, and this is its own mapping, field by field.
//
//	regarding                 involvedObject
//	note                      message
//	reportingController       reportingComponent (Go: ReportingController)
//	deprecatedSource          source
//	deprecatedFirstTimestamp  firstTimestamp
//	deprecatedLastTimestamp   lastTimestamp
//	deprecatedCount           count
//
// All other fields have the same names in both groups. Nothing is made up: an
// Event without deprecatedCount has no count. Sink fills that in.
//
// FromCore undoes it without a loss. apiVersion and kind stay empty if they are,
// and otherwise become those of core/v1. managedFields are what they are on the
// server, where each entry names the group that it was written in. The result
// shares no memory with event. It is nil if event is.
func ToCore(event *eventsv1.Event) *corev1.Event { return coreevents.ToCore(event) }

// FromCore returns an Event of core/v1 as events.k8s.io/v1 shows it. It undoes
// ToCore, whose table it reads from right to left.
//
// Nothing is made up here either: an Event that was born old, without eventTime,
// gets neither that nor series. Its times and its count are in the deprecated
// fields.
func FromCore(event *corev1.Event) *eventsv1.Event { return coreevents.FromCore(event) }
