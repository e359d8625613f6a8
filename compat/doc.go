// Package compat connects the legacy world of Kubernetes events to package events:
// it offers the recorder behind the interfaces of k8s.io/client-go/tools/record,
// converts Events between events.k8s.io/v1 and core/v1, and writes Events through
// whichever of them the server permits.
//
// # Usage
//
// To migrate a controller from the legacy recorder, replace
// record.NewBroadcaster with [NewBroadcaster]. Its call sites stay the same:
//
//	broadcaster := compat.NewBroadcaster(compat.NewSink(clientset))
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
// # Sinks
//
// Use [NewSink] unless you have a reason for another sink:
//
//   - [Sink] writes through core/v1 if the server permits it, and through events.k8s.io/v1
//     otherwise. It works with the role of either recorder of client-go.
//   - [events.EventSinkImpl] writes through events.k8s.io/v1 only. Use it if no Event may
//     have the deprecated fields, and in programs that should not import this package.
//   - [CoreSink] writes through core/v1 only, in the form of the legacy recorder's Events:
//     with firstTimestamp, lastTimestamp, count and source, and without eventTime. Most programs
//     read these fields. events.k8s.io/v1 rejects new Events that set them.
//
// All of them work with any broadcaster:
//
//	broadcaster := events.NewBroadcaster(compat.NewSink(clientset))
//
// They require the verbs create and patch on events, and list to find the series of
// earlier processes by listing: EventSinkImpl in the group events.k8s.io, CoreSink in the
// core group (""), and Sink in either of them.
//
// # Guarantees
//
//   - The conversions are lossless: converting an Event to the other group and back
//     returns the original. They invent nothing: an Event without eventTime does
//     not get one.
//   - All sinks write the same series. A program can switch between them and continue its
//     Events.
//   - Sink loses no event for a permission or an API that one of the two groups has. It
//     makes no request that is not about an Event.
//   - Each write of CoreSink keeps the deprecated fields consistent with the new
//     ones: count equals series.count, and lastTimestamp equals
//     series.lastObservedTime truncated to seconds.
//   - The recorder counts every event of a legacy call site. If events differ only in
//     their messages, up to ten messages ([DefaultDistinctNotes]) get an Event each.
//     The others share one Event. Through core/v1, its message is the latest one; through
//     events.k8s.io/v1, which does not permit to change it, an annotation has the latest.
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
//   - Only core/v1 can update the deprecated fields. A program that switches to
//     EventSinkImpl leaves them as they were last written, and so does Sink if the server
//     denies patches through core/v1.
//   - Sink needs two requests instead of one when core/v1 denies the first request in a namespace, and
//     again once an hour. If both groups deny a request, it asks both again after 1 second, doubling to 5
//     minutes, and one group in between.
//   - Sink notices within an hour that it may use core/v1.
//   - [CoreSink.Patch] supports patches of metadata and series. It does not translate
//     other fields.
//   - Servers before Kubernetes 1.19 cannot select Events by their reporting
//     controller. [CoreSink.List] and [Sink.List] then read all Events of the namespace.
//   - The admission plugin EventRateLimit limits requests of the core group only. If
//     it is enabled, it throttles CoreSink and Sink, as it does the legacy recorder.
package compat
