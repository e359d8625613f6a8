// Package pod stands for a reconciler that knative generates.
package pod

import "context"

// NewImpl returns a controller.
func NewImpl(context.Context, any) any { return nil }
