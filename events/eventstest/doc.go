// Package eventstest is for the tests of programs that emit events, and of sinks.
//
// # What does my controller emit?
//
// A Recorder keeps what is emitted, as records and not as strings. It takes the
// place of client-go's FakeRecorder, and does not block:
//
//	recorder := eventstest.NewRecorder(t)
//	reconciler := &BackupReconciler{Recorder: recorder}
//	...
//	recorder.Expect(t, eventstest.Want{Regarding: backup, Type: "Warning", Reason: "QuotaExceeded"})
//	recorder.ExpectNone(t, eventstest.Want{Reason: "SnapshotTaken"})
//	event, err := recorder.Wait(ctx, eventstest.Want{Reason: "Retrying"}) // of another goroutine
//
// ExpectOnly and ExpectInOrder want more. Find and Events return plain values, for
// assertions of any other kind:
//
//	assert.Len(t, recorder.Find(eventstest.Want{Regarding: backup}), 3)
//
// Legacy gives the recorder to call sites of client-go's tools/record, and Named
// makes one of another controller that keeps its events in the same place.
//
// # Would it reach the server?
//
// An event that production would lose or change fails the test at once, with the
// field and its value: one without an object, of an unknown type or with a note that
// is too long. Options.Style adds docs/style-guide.md. A Recorder that no test was
// given to, such as the zero value, fails nothing; Check says what is wrong. Validate
// and Lint do the same for any Event.
//
// # What becomes of a loop?
//
// A Broadcaster is the real one, and writes to a server in memory. Time stands still
// until the test lets it pass:
//
//	broadcaster := eventstest.NewBroadcaster(t)
//	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/backup-controller")
//	for range 600 {
//		reconcile(recorder)
//		broadcaster.Advance(time.Second)
//	}
//	broadcaster.Advance(7 * time.Minute)
//	broadcaster.Series()[0].State  // series.Finished
//	broadcaster.Requests()         // three of them
//
// It runs in a testing/synctest bubble beside the test. The bubble knows when every
// goroutine in it waits for something that only more time can bring, so Advance, and
// each call of a recorder, returns exactly when there is nothing left to be done at
// that time; nothing sleeps and nothing polls. A test that runs in a bubble itself
// may use a Broadcaster too. It lives in that bubble then, time passes with the test's
// own time.Sleep as with Advance, and recorders do not wait, as in production.
//
// A Server alone is a sink for a broadcaster that the test starts itself, with a
// clock of its own, or for several that come one after the other.
//
// # Is my sink one?
//
// TestSink tests a sink of one's own, as testing/slogtest does a handler:
//
//	func TestMySink(t *testing.T) {
//		eventstest.TestSink(t, func(t *testing.T) eventstest.SinkUnderTest {
//			return eventstest.SinkUnderTest{Sink: newMySink(t)}
//		})
//	}
//
// # Guarantees
//
//   - A Recorder never blocks and never panics, whatever it is given, and reports
//     nothing to a test that has ended.
//   - What is kept is what was emitted, call by call: nothing is cut, repaired or put
//     together.
//   - Validate finds a problem where kube-apiserver (v1.36) refuses to create an Event,
//     and nowhere else. The real server is asked by the tests of this project.
//   - Lint finds nothing in an event that keeps to the style guide.
//   - A Server answers to creates and patches as kube-apiserver does, with the same codes
//     and fields. The tests ask both.
//   - A test with a Broadcaster does the same each time it runs, as far as the
//     recorder itself does; see below.
//   - Everything may be used concurrently, but for what is said at Broadcaster.
//
// # Limitations
//
//   - A Recorder keeps all events until Reset.
//   - Neither knows which namespaces exist and who may write to them, nor how much etcd
//     takes in one piece.
//   - Back-off has jitter: when exactly a failed write is tried again differs from run
//     to run. Advance by more than the longest.
//   - Requests about different series at the same time come in any order.
//   - A Broadcaster needs a *testing.T and begins in the year 2000.
package eventstest
