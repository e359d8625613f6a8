// Package controller has the functions of knative that keep a recorder in a context.
package controller

import (
	"context"

	"k8s.io/client-go/tools/record"
)

// WithEventRecorder returns a context with a recorder.
func WithEventRecorder(ctx context.Context, _ record.EventRecorder) context.Context { return ctx }

// GetEventRecorder returns the recorder of a context.
func GetEventRecorder(context.Context) record.EventRecorder { return nil }
