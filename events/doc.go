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
// The first occurrence creates an Event, and the second one within [Options].MaxWindow turns it
// into a series. From then on the recorder counts in memory, and a heartbeat updates the count each
// [Options].HeartbeatInterval. When the series has been quiet for its window, which follows the loop,
// the recorder writes the last count and finishes it. With the default options a hot loop takes
// three requests, and two more per hour.
//
// Call [Broadcaster.Shutdown] after the last emitter has returned, or [Broadcaster.ShutdownWithContext]
// for a deadline and an error; with controller-runtime, after mgr.Start returns. [New] takes [Options], such
// as a [Filter]. NewSink of package compat returns a sink that suits most readers of Events, and package
// events/metrics a Prometheus collector.
//
// # Guarantees
//
//   - Eventf does not wait for the network, for handlers, or for [Options].OnDrop. It does not panic,
//     whatever its arguments are.
//   - Every occurrence that passes [Options].Filter reaches the server, or the recorder drops it: counts it in [Stats].Dropped,
//     passes it to [Options].OnDrop, and logs it, at most once per hour and reason. An outage of
//     the server drops nothing while [Options].Capacity suffices.
//   - Counts and times of an Event never decrease. If several processes write to it, their counts add up.
//   - [Options].Capacity bounds the memory. A broadcaster that is shut down leaves nothing.
//   - The recorder repairs what the API server would reject: it truncates what is too long, and
//     replaces what is invalid or missing.
//   - Each namespace is a client of its own: if the server denies, fails, or delays its requests, or pushes
//     back (429), others continue.
//   - A Normal never evicts a Warning that is not over.
//   - The recorder holds no lock while it calls a sink, a handler, a logger, or [Options].OnDrop.
//   - A restarted process continues the series of the previous one, in the same Events.
//   - With [EventSinkImpl], the recorder needs the verbs create and patch on events in the group
//     events.k8s.io.
//
// # Limitations
//
//   - A process that is killed loses the occurrences since the last write of each series.
//   - If the time between two occurrences more than doubles, the Event can be Finished in between.
//   - The recorder formats at most 1,000 notes of ongoing series per second. Beyond that, each series
//     has its turn.
//   - If a response is lost and another process writes to the Event before the recorder looks at it,
//     occurrences can count twice. docs/delivery.md has rarer cases.
//   - If a sink hangs after its context has ended, so do its series. Once two calls of a namespace
//     hang, it has no other. EventSinkImpl does not hang.
//   - If a sink returns no resourceVersion, a patch that the server applies late can overwrite a newer
//     count until the next write.
package events
