// Package compat connects the legacy world of Kubernetes events to package events:
// it offers the recorder behind the interfaces of k8s.io/client-go/tools/record,
// converts Events between events.k8s.io/v1 and core/v1, and writes Events through
// core/v1.
//
// # Usage
//
// To migrate a controller from the legacy recorder, replace
// record.NewBroadcaster with [NewBroadcaster]. Its call sites stay the same:
//
//	broadcaster := compat.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
//	// was: record.NewBroadcaster()
//	broadcaster.StartRecordingToSink(nil) // ignores its argument, so a legacy sink is fine
//	defer broadcaster.Shutdown()
//	recorder := broadcaster.NewRecorder(scheme, corev1.EventSource{Component: "backup-controller"})
//	recorder.Eventf(pod, corev1.EventTypeWarning, "BackupFailed", "no space left on %s", disk)
//
// With controller-runtime, set ctrl.Options.EventBroadcaster to the broadcaster.
// To migrate call sites one by one, use [NewBroadcasterFor]. For code that wants
// only a legacy recorder, such as the EventRecorder of a resource lock, wrap a
// recorder with [NewRecorder].
//
// [ToCore] and [FromCore] convert an Event in the same way as the API server. A tool
// that supports only one group can thus display Events of the other:
//
//	for _, event := range list.Items {
//		show(compat.ToCore(&event))
//	}
//
// [CoreSink] replaces [events.EventSinkImpl]:
//
//	broadcaster := events.NewBroadcaster(&compat.CoreSink{Interface: clientset.CoreV1()})
//
// Use it on servers without events.k8s.io/v1 (before Kubernetes 1.19), and if
// consumers of Events read only firstTimestamp, lastTimestamp, count and source.
// Without CoreSink these fields stay empty: events.k8s.io/v1 deprecates them and
// rejects new Events that set them.
//
// CoreSink requires the verbs create and patch on events of the core group (""),
// and list to find the series of earlier processes by listing. A role for
// events.k8s.io does not grant them.
//
// # Guarantees
//
//   - The conversions are lossless: converting an Event to the other group and back
//     returns the original. They invent nothing: an Event without eventTime does
//     not get one.
//   - CoreSink writes the same Event, with the same series, as EventSinkImpl. A
//     program can switch between the two sinks and continue its series.
//   - Each write of CoreSink keeps the deprecated fields consistent with the new
//     ones: count equals series.count, and lastTimestamp equals
//     series.lastObservedTime truncated to seconds.
//   - The recorder counts every event of a legacy call site. If events differ only in
//     their messages, up to ten messages ([Options].DistinctNotes) get an Event each.
//     The others share one Event, which shows the latest message.
//   - The host of a [corev1.EventSource] becomes the reporting instance, as in client-go.
//     CoreSink and [Broadcaster.StartEventWatcher] set source.host to it.
//   - [Broadcaster.StartRecordingToSink] never writes to the legacy sink that it
//     receives, so each event has a single writer.
//   - All functions and methods are safe for concurrent use.
//
// # Limitations
//
//   - Legacy events have no related object. Their action is their reason, unless
//     [Options].Action returns another.
//   - CoreSink updates the deprecated fields, EventSinkImpl cannot: a program that
//     switches to EventSinkImpl leaves them as CoreSink last wrote them.
//   - [CoreSink.Patch] supports patches of metadata and series. It does not translate
//     other fields.
//   - Servers before Kubernetes 1.19 cannot select Events by their reporting
//     controller. [CoreSink.List] then reads all Events of the namespace.
//   - The admission plugin EventRateLimit limits requests of the core group only. If
//     it is enabled, it throttles CoreSink.
package compat
