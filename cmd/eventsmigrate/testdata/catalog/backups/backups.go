// Package backups emits an event in two places.
package backups

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

// Run emits events.
func Run(ctx context.Context, r events.EventRecorder) {
	claim := &corev1.PersistentVolumeClaim{}
	r.Eventf(claim, nil, corev1.EventTypeWarning, "QuotaExceeded", "TakeSnapshot", "snapshot of %s failed", claim.Name)
	<-ctx.Done()
	r.Eventf(claim, nil, corev1.EventTypeWarning, "QuotaExceeded", "TakeSnapshot", "no snapshot of %s", claim.Name)
}
