// Package compat is for those who come from the legacy recorder
// (k8s.io/client-go/tools/record) and know Events as core/v1 has them: it has this
// recorder behind the legacy interfaces, converts between the two groups that
// Events are shown in, and writes the recorder's Events through the older one.
//
// # Usage
//
// A controller of the legacy recorder changes one line, and keeps its call sites:
//
//	broadcaster := compat.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
//	// was: record.NewBroadcaster()
//	broadcaster.StartRecordingToSink(nil) // a legacy sink may be given, and is not used
//	defer broadcaster.Shutdown()
//	recorder := broadcaster.NewRecorder(scheme, corev1.EventSource{Component: "backup-controller"})
//	recorder.Eventf(pod, corev1.EventTypeWarning, "BackupFailed", "no space left on %s", disk)
//
// With controller-runtime it goes into ctrl.Options.EventBroadcaster. NewRecorder
// makes a legacy recorder out of any other, for code that wants only that, such as
// the EventRecorder of a resource lock.
//
// ToCore and FromCore convert an Event as the API server does, in each
// direction. So a tool that knows one group can be given what was read from the
// other:
//
//	for _, event := range list.Items {
//		show(compat.ToCore(&event))
//	}
//
// CoreSink takes the place of events.EventSinkImpl, and nothing else changes:
//
//	broadcaster := events.NewBroadcaster(&compat.CoreSink{Interface: clientset.CoreV1()})
//
// It is for servers without events.k8s.io/v1 (before Kubernetes 1.19), and where
// consumers of Events read only firstTimestamp, lastTimestamp, count and source:
// the recorder leaves these empty otherwise, since events.k8s.io/v1 has them
// deprecated and does not let anybody set them.
//
// The verbs that it needs are create and patch on events of the core group (""),
// and list to find the series of earlier processes by listing. A role for
// events.k8s.io does not grant them.
//
// # Guarantees
//
//   - The conversions have no loss: there and back is what it was. They make
//     nothing up. An Event that was born old, without eventTime, gets no field of
//     a new one.
//   - A series has the same life through CoreSink as through EventSinkImpl, in
//     the same Event: a program can change from one to the other, in both
//     directions, and go on in what it has written before.
//   - What CoreSink says in the old fields agrees with the new ones in the same
//     write: count with series.count, lastTimestamp with series.lastObservedTime.
//     They have whole seconds.
//   - What a legacy call site emits is counted as exactly as everything else. Up to
//     ten messages (Options.DistinctNotes) that differ in nothing else have an Event
//     each, the rest share one, which shows the latest.
//   - There is one writer: a sink that is handed to Broadcaster.StartRecordingToSink is
//     not written to.
//   - Everything may be used concurrently.
//
// # Limitations
//
//   - Legacy events have no related object, and no action but their reason, unless
//     Options.Action says one. The host of their source is not written.
//   - The time of an occurrence is that of the call, also for PastEventf.
//   - While a program writes through EventSinkImpl, the old fields of an Event that
//     CoreSink created stay as they are. events.k8s.io/v1 lets nobody change them.
//   - A patch for CoreSink is one of metadata and series, as the recorder writes
//     them. Other fields are not translated.
//   - source has no host: the recorder does not know its node.
//   - Servers before Kubernetes 1.19 cannot select Events by their reporting
//     controller. There CoreSink reads all Events of the namespaces that it lists.
//   - The admission plugin EventRateLimit looks at requests of the core group
//     alone. Where it is on, CoreSink is slowed down by it.
package compat
