// Package record replaces k8s.io/client-go/tools/record. It has every name that client-go
// exports from v0.32 to v0.37, and records the events of legacy call sites as series.
//
// # Usage
//
// Replace the import path, in programs and in tests:
//
//	import (
//		"k8s.io/client-go/tools/record"                    // before
//		"github.com/eventseries/eventseries/compat/record" // after
//	)
//
// Everything else stays the same, including the role, which grants create and patch on
// events of the core group:
//
//	broadcaster := record.NewBroadcaster()
//	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
//	defer broadcaster.Shutdown()
//	recorder := broadcaster.NewRecorder(scheme, corev1.EventSource{Component: "backup-controller"})
//	recorder.Eventf(pod, corev1.EventTypeWarning, "BackupFailed", "no space left on %s", disk)
//
// Call Shutdown when the program ends: it writes the current counts.
//
// To set the options of the [events.Broadcaster] that records the events, use
// [WithOptions]. To use its methods, use the type [Broadcaster]:
//
//	stats := broadcaster.(*record.Broadcaster).Events().Stats()
//
// To write through events.k8s.io/v1, to add related objects or to choose the actions of
// events, use package compat or package events.
//
// # Guarantees
//
//   - The types are those of client-go, except for [BroadcasterOption]. Values of both
//     packages are interchangeable.
//   - Every occurrence counts. No event is filtered, however often it occurs.
//   - The broadcaster sends create and patch requests for events of the core group, and
//     none before the first event. A fake clientset records no other actions.
//   - The broadcaster writes to one sink: to the one that
//     [Broadcaster.StartRecordingToSink] receives, in the namespace of its client. If the
//     sink is client-go's EventSinkImpl with a REST client, requests bypass the rate limiter
//     and the retries of the client, as with compat.CoreSink. Otherwise the broadcaster
//     calls Create and Patch.
//   - The broadcaster writes events that are emitted before StartRecordingToSink.
//   - Without Shutdown, the server knows about half of the occurrences of a steady loop, or more,
//     once the loop has run for some seconds: the first heartbeat comes after one second, and
//     the intervals double up to 5 minutes.
//   - involvedObject (without resourceVersion), type, reason, message, source, count,
//     firstTimestamp, lastTimestamp and the namespace of an Event are those that client-go
//     would write.
//   - Watchers ([Broadcaster.StartEventWatcher], StartLogging and StartStructuredLogging)
//     receive each occurrence, as in client-go.
//   - [FakeRecorder] is that of client-go.
//   - All functions and methods are safe for concurrent use.
//
// # Differences to client-go
//
//   - Events also have fields of events.k8s.io/v1: series, action, which is the reason, and
//     reportingInstance, which is "<component>-<host name>" if the source has no host. A label
//     contains the state of a series, and an annotation the first time to the microsecond.
//   - The API server requires a qualified name as reportingComponent. The broadcaster
//     repairs others, and logs that. The component of leader election, "<host name>_<UUID>",
//     becomes compat.LeaderElection. source stays as it is. If two sources become the same
//     reportingComponent and reportingInstance, those of the second one get a hash.
//   - Names end in a hash of the event and not in its time, so a restarted process finds
//     its Events.
//   - The resourceVersion of involvedObject is empty. In client-go, it is that of the first
//     occurrence.
//   - An occurrence counts in the same Event for as long as the server keeps that, also
//     after a restart. client-go patches the Event of the first occurrence while the event is
//     in its cache.
//   - Up to ten messages of events that differ in nothing else get an Event each. Later ones
//     share an Event, whose message begins with "(combined from similar events): " and ends
//     with the latest one, as in client-go. There, the tenth message is the first that is
//     combined, and annotations get lost.
//   - Of the correlator options, MaxEvents and MessageFunc have an effect
//     ([WithCorrelatorOptions]). The broadcaster logs others. The sleep duration has none: the
//     broadcaster backs off exponentially, for each series, and does not drop events after
//     twelve attempts.
//   - Stopping the result of StartRecordingToSink writes pending events first. Shutdown and
//     the end of the context of [WithContext] do the same. Shutdown therefore takes up to
//     events.Options.ShutdownTimeout.
//   - A recording that is stopped does not start again. In client-go, it does, and what is emitted
//     meanwhile is lost.
//   - A message of more than 4 KiB is truncated, or of more than 1,024 bytes if the Event keeps
//     its eventTime; see compat.CoreSink. Annotations of more than 64 KiB are omitted, and an
//     empty reason becomes "Unknown".
//   - A second sink gets no events while the first is in use. In client-go, it gets
//     all of them.
//
// # Limitations
//
//   - The options of client-go's package have another type, so the import of all files that
//     pass a BroadcasterOption to each other must change together.
//   - The methods of a custom sink have no context. The broadcaster abandons a call that
//     hangs, but cannot cancel it.
//   - Shutdown logs and counts events that it cannot write in time.
//   - The broadcaster knows the 10,000 sources that were used last. Events of other recorders have the
//     reportingComponent and the reportingInstance as source.
package record
