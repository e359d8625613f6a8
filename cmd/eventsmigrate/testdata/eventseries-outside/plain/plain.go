// Package plain is not among the patterns, and imports none of them.
package plain

import "k8s.io/client-go/tools/record"

// New keeps a recorder.
func New(recorder record.EventRecorder) any { return recorder }
