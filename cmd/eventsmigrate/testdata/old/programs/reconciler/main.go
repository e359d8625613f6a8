// Command reconciler only returns its events, to a reconciler that knative generates.
package main

import (
	"context"

	"knative.dev/pkg/reconciler/pod"
)

func main() { pod.NewImpl(context.Background(), nil) }
