// Package legacyrecorder implements the interface of the legacy recorder
// (k8s.io/client-go/tools/record) with a recorder of events.k8s.io/v1.
//
// # Usage
//
//	recorder := legacyrecorder.New(broadcaster.NewRecorder(scheme, name), nil)
//	recorder.Event(pod, corev1.EventTypeWarning, "BackupFailed", "no space left")
//
// # Guarantees
//
//   - If an [Action] panics or returns "", the reason becomes the action.
//   - A [Recorder] is safe for concurrent use if its target is.
//
// # Limitations
//
//   - Events have no related object.
package legacyrecorder
