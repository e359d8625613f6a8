// Package events records Kubernetes events (events.k8s.io/v1) as series. It replaces
// k8s.io/client-go/tools/events and exports the same names.
//
// # Usage
//
//	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
//	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
//		return err
//	}
//	defer broadcaster.Shutdown()
//
//	recorder := broadcaster.NewRecorder(scheme, "example.com/backup-controller")
//	recorder.Eventf(backup, volume, corev1.EventTypeWarning, "SnapshotFailed", "Snapshotting",
//		"snapshot of %s failed: %v", volume.Name, err)
//
// The first occurrence creates an Event. The second one within [Options].MaxWindow turns that
// Event into a series. From then on the recorder counts occurrences in memory, and a heartbeat
// updates the count on the server every [Options].HeartbeatInterval. When the series has been
// quiet for its window, the recorder writes the last count and finishes it. The window follows the
// loop: it is about twice the longest recent time between two occurrences, at least
// [Options].FinishAfter and at most MaxWindow. A series that recurs later continues in the same
// Event while the server keeps that. With the default options a hot loop takes three requests, and
// two more per hour.
//
// Call [Broadcaster.Shutdown] after the last emitter has returned, or
// [Broadcaster.ShutdownWithContext] for a deadline and an error. In a program that uses
// controller-runtime that is after mgr.Start returns.
//
// [New] makes a broadcaster with [Options], such as a [Filter]. NewSink of package compat returns a sink
// that suits most readers of Events, and package events/metrics a Prometheus collector.
//
// # Guarantees
//
//   - Eventf does not wait for the network, for event handlers, or for [Options].OnDrop. It does not
//     panic, whatever its arguments are.
//   - Every occurrence reaches the server, or the recorder drops it: counts it in [Stats].Dropped,
//     passes it to [Options].OnDrop, and logs it, at most once per hour and reason. An outage of
//     the server drops nothing while [Options].Capacity suffices. What [Options].Filter excludes
//     is counted in [Stats].Filtered instead.
//   - One write per series is in flight at a time. The count and the time of an Event
//     never decrease.
//   - Every patch of a series names the resourceVersion that it applies to, if the sink returns
//     one. A patch that the server applies late fails instead of overwriting newer data. If
//     several processes write to one Event, the recorder adds up their counts.
//   - [Options].Capacity bounds the memory. The limits of requests in flight, the
//     timeout of a request, and the number of event handlers bound the goroutines. A broadcaster whose context
//     has ended, or that is shut down, leaves nothing.
//   - The recorder repairs what the API server would reject: it truncates values that
//     are too long, and replaces invalid and missing ones.
//   - Each namespace is a client of its own. If the server denies the requests for one,
//     fails or delays them, or pushes back (429), the series of others continue.
//     The recorder makes no request for a namespace before its Retry-After, or
//     [Options].EventTTL, has passed.
//   - If the table of series is full, series that have ended are evicted first, and a
//     Normal never evicts a Warning that has not ended.
//   - The recorder holds no lock while it calls a sink, a handler, a logger, or [Options].OnDrop.
//   - A restarted process continues the series of the previous one. It finds their
//     Events by name, and by a list if it has the permission and the cluster is not too
//     large. In the scope [SameController] every process of the controller does.
//   - With [EventSinkImpl], the recorder needs the verbs create and patch on events in the group
//     events.k8s.io.
//
// # Limitations
//
//   - If the time between two occurrences more than doubles, the Event can be Finished in
//     between. The next occurrence within [Options].MaxWindow makes it Ongoing again.
//     A later one counts in the same Event, which stays Finished.
//   - A process that is killed loses the occurrences since the last write of each series.
//   - The recorder formats at most 1,000 notes of ongoing series per second. Beyond that, each
//     series has its turn each second, later if there are more than 1,000 series. The Event
//     shows the latest one in the annotation eventseries.dev/last-note.
//   - If a response is lost and another process writes to the same Event before the recorder looks
//     at it, the occurrences that were new in the unanswered write can count twice. None is lost.
//     docs/delivery.md has two rarer cases.
//   - If a response is lost and [Broadcaster.Shutdown] then drops the occurrences, because of its
//     timeout or a missing permission, the server can have them nevertheless.
//   - If a sink hangs after its context has ended, the series of that call waits
//     until the call returns. Once two calls of a namespace hang, it has no other. [EventSinkImpl]
//     does not hang.
//   - If a sink returns no resourceVersion, patches do not name one. Then a patch
//     that the server applies late can overwrite a newer count until the next write.
package events
