// Package events is a recorder for Kubernetes events (events.k8s.io/v1) in which
// being in a loop is a state and not a stream of writes. It can stand in for
// k8s.io/client-go/tools/events: the names are the same.
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
// The first time that something happens, an Event is created. When it happens
// again within six minutes, the same Event becomes a series. From then on
// occurrences are counted in memory; every 30 minutes a heartbeat tells the
// server how many there were, and after six quiet minutes the series is closed.
// So a hot loop costs three requests, and two an hour, however fast it spins.
//
// Call Shutdown when nothing emits any more. In a program of controller-runtime
// that is after mgr.Start has returned, so `defer broadcaster.Shutdown()` goes
// before it.
//
// # Guarantees
//
//   - Eventf never waits for the network, a handler or a logger's backlog, and
//     starts no goroutine. Nothing that a caller passes makes it panic.
//   - What Eventf took in reaches the server with the right count, or is counted
//     in Stats.Dropped by its reason, offered to Options.OnDrop, and logged at
//     most once in a minute a reason. An outage costs nothing but time.
//   - The writes of one series are made one at a time and in order; counts and
//     times on the server never go back.
//   - Memory is bounded by Options.Capacity, goroutines by Options.Workers and
//     the number of watchers.
//   - No Event is refused by the API server for its form: what is too long, has
//     the wrong form or is missing is repaired before it is sent.
//   - When the server pushes back (429), all writing pauses: 5 seconds at first,
//     up to 5 minutes, or for as long as it says (Retry-After), up to an hour.
//   - No lock is held while a sink, a handler, a logger or other code of the user
//     is called.
//   - Where processes share their series (Options.Scope), each write says which
//     version of the Event it is about, so that nobody undoes what another has
//     counted.
//   - A process that is started again goes on in the Events of the one before it:
//     it finds them by their names, and where it may list, by listing. Under
//     Options.Scope SameController, so does any other process of the controller.
//   - The verbs that are needed are create and patch on events.events.k8s.io.
//
// # Limitations
//
//   - A process that is killed loses what it has not written: of a running series
//     the occurrences since the last heartbeat.
//   - Of the notes of a running series, one in ten seconds is looked at; the
//     latest is in the annotation eventseries.dev/last-note.
//   - A sink that does not return when its context ends holds up the series that it
//     was called for until it does, since what it does late must not come after
//     what is newer. If it does so to twice as many calls as Options.Workers,
//     nothing is written until one of them returns. EventSinkImpl returns.
//   - A request can be given up by the client and yet be carried out by the server,
//     even after the next one for the same Event. The count on the server is the
//     older one then, until the series is written again.
package events
