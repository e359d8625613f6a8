// Package eventstest helps to test programs that emit Kubernetes events, and sinks.
//
// Choose by the question that the test answers:
//
//   - What does my controller emit? Use a [Recorder].
//   - What do users see after an hour? Use a [Broadcaster].
//   - What does the API server get from a broadcaster of my own? Use a [Server].
//   - Does my sink work? Use [TestSink].
//   - Does the API server accept this Event? Use [Validate] and [Lint].
//
// # What a controller emits
//
// A [Recorder] takes the place of client-go's FakeRecorder. It keeps each event as a
// record with fields, not as a string, and never blocks:
//
//	recorder := eventstest.NewRecorder(t)
//	reconciler := &BackupReconciler{Recorder: recorder}
//	...
//	recorder.Expect(t, eventstest.Want{Regarding: backup, Type: "Warning", Reason: "QuotaExceeded"})
//	recorder.ExpectNone(t, eventstest.Want{Reason: "SnapshotTaken"})
//
// [Recorder.ExpectOnly] allows no other events, [Recorder.ExpectInOrder] checks their
// order, and [Recorder.Wait] waits for an event from another goroutine. For any other
// assertion, [Recorder.Find] and [Recorder.Events] return plain values:
//
//	assert.Len(t, recorder.Find(eventstest.Want{Regarding: backup}), 3)
//
// [Recorder.Legacy] returns a recorder for call sites of client-go's tools/record, and
// [Recorder.Named] one for another controller of the same program.
//
// An event that production would lose or change fails the test at once, with the field
// and its value: for example, one with an unknown type or a note that is too long.
// [Options.Style] adds the rules of docs/style-guide.md. A Recorder without a test, such
// as the zero value, fails nothing by itself; call [Recorder.Check].
//
// # What users see
//
// A [Broadcaster] is the real one, with a server in memory and virtual time. Time stands
// still until the test advances it:
//
//	broadcaster := eventstest.NewBroadcaster(t)
//	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/backup-controller")
//	for range 600 {
//		reconcile(recorder)
//		broadcaster.Advance(time.Second)
//	}
//	broadcaster.Advance(7 * time.Minute)
//	broadcaster.Series()[0].State // series.Finished
//	broadcaster.Requests()        // three requests
//
// A slow loop is one series, too. Its window, [series.Series.QuietWindow], is about twice
// as long as the time between two occurrences:
//
//	for range 12 {
//		reconcile(recorder)
//		broadcaster.Advance(10 * time.Minute)
//	}
//	s := broadcaster.Series()[0]         // series.Ongoing
//	broadcaster.Advance(s.QuietWindow()) // series.Finished after 21 minutes
//
// The broadcaster runs in a testing/synctest bubble next to the test. The bubble knows
// when all of its goroutines wait for time to pass. So [Broadcaster.Advance] and each
// call of a recorder return as soon as there is nothing left to do at that time. Nothing
// sleeps, and nothing polls.
//
// A test that runs in a bubble itself can use a Broadcaster, too. The broadcaster then
// lives in the test's bubble: [time.Sleep] advances the time like Advance, and calls of
// recorders return at once, as in production.
//
// # Sinks
//
// [TestSink] tests a sink, like testing/slogtest tests a handler:
//
//	func TestMySink(t *testing.T) {
//		eventstest.TestSink(t, func(t *testing.T) eventstest.SinkUnderTest {
//			return eventstest.SinkUnderTest{Sink: newMySink(t)}
//		})
//	}
//
// # Guarantees
//
//   - A Recorder never blocks and never panics, and never fails a test that has ended.
//   - A Recorder keeps events as emitted. It does not truncate, repair or aggregate them.
//   - [Validate] finds a problem if and only if kube-apiserver v1.36 refuses to create the
//     Event. The tests of this project compare it with the real server.
//   - [Lint] finds no problem in an event that follows the style guide.
//   - A [Server] answers creates and patches like kube-apiserver, with the same codes and
//     fields. The tests of this project compare the two.
//   - A test with a Broadcaster is reproducible, within the limitations below.
//   - Everything is safe for concurrent use, with the exception that [Broadcaster]
//     documents.
//
// # Limitations
//
//   - A Recorder keeps all events until [Recorder.Reset].
//   - Neither Validate nor a Server knows which namespaces exist, what RBAC allows, and
//     how much etcd stores in one piece.
//   - Back-off has jitter, so the time of a retry differs from run to run. Advance by
//     more than the longest back-off.
//   - Concurrent requests about different series come in any order.
//   - A Broadcaster needs a *testing.T, and its time begins in the year 2000.
package eventstest
