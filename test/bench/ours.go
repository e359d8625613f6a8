package bench

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
)

// ours is this project's recorder. When Eventf returns, the occurrence has been
// counted, so there is nothing to wait for.
type ours struct {
	*events.Broadcaster
	recorder events.EventRecorder
}

// newOurs starts a recorder of this project without a limit of its requests, with
// options of which the rest is up to the caller.
func newOurs(to events.EventSink, opts events.Options) *ours {
	opts.QPS = -1
	opts.ShutdownTimeout = time.Second // nobody looks at what is written then
	b := events.NewBroadcasterWithOptions(to, opts)
	must(b.StartRecordingToSinkWithContext(klog.NewContext(context.Background(), logr.Discard())))
	return &ours{Broadcaster: b, recorder: b.NewRecorder(scheme.Scheme, controller)}
}

func (r *ours) eventf(s *subject) {
	regarding, related := s.about()
	r.recorder.Eventf(regarding, related, corev1.EventTypeWarning, reason, action, note, noteArgs...)
}

func (*ours) batch() int        { return 0 }
func (*ours) settle(int64)      {}
func (*ours) writes() bool      { return true }
func (r *ours) tracked(int) int { return r.Stats().Tracked }
func (r *ours) close()          { r.Shutdown() }
