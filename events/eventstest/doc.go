// Package eventstest is for testing controllers that emit events.
//
// # Usage
//
// A Recorder keeps what is emitted, as records and not as strings:
//
//	recorder := eventstest.NewRecorder(t)
//	reconciler := &BackupReconciler{Recorder: recorder}
//	...
//	recorder.Expect(t, eventstest.Want{Regarding: backup, Type: "Warning", Reason: "QuotaExceeded", NoteContains: "data-0"})
//	recorder.ExpectNone(t, eventstest.Want{Reason: "SnapshotTaken"})
package eventstest
