package bench

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

// toolsRecord is client-go's tools/record. An event passes two goroutines and two
// queues of 1,000 that drop what they have no room for, so no more than that are let
// in at a time. The last thing that is done to each is to ask its spam filter,
// whose key function can be set and counts here. It does what the default does.
type toolsRecord struct {
	record.EventBroadcaster
	recorder record.EventRecorder

	taken atomic.Int64
	want  atomic.Int64
	done  chan struct{} // has room for one
}

func newToolsRecord(to *sink) *toolsRecord {
	r := &toolsRecord{done: make(chan struct{}, 1)}
	r.EventBroadcaster = record.NewBroadcaster(record.WithCorrelatorOptions(record.CorrelatorOptions{
		SpamKeyFunc: func(event *corev1.Event) string {
			key := spamKey(event)
			if r.taken.Add(1) == r.want.Load() {
				r.done <- struct{}{}
			}
			return key
		},
	}))
	r.StartRecordingToSink(coreSink{to})
	r.recorder = r.NewRecorder(scheme.Scheme, corev1.EventSource{Component: controller}).WithLogger(logr.Discard())
	return r
}

// legacyCache is how many keys the correlator of tools/record remembers, if it is
// not told otherwise.
const legacyCache = 4096

// spamKey makes the key of the source and the object, as client-go does.
func spamKey(event *corev1.Event) string {
	o := &event.InvolvedObject
	return strings.Join([]string{
		event.Source.Component, event.Source.Host, o.Kind, o.Namespace, o.Name, string(o.UID), o.APIVersion,
	}, "")
}

// eventf leaves out related and the action, for which Events had no room then.
func (r *toolsRecord) eventf(s *subject) {
	r.recorder.Eventf(s.regarding.Object, corev1.EventTypeWarning, reason, note, noteArgs...)
}

func (*toolsRecord) batch() int { return queued }

func (r *toolsRecord) settle(n int64) {
	r.want.Store(n)
	if r.taken.Load() >= n {
		// It may have come to the end before it knew that this was the end.
		select {
		case <-r.done:
		default:
		}
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
		panic(fmt.Sprintf("bench: tools/record has taken in %d of %d", r.taken.Load(), n))
	}
}

func (*toolsRecord) writes() bool { return true }

func (*toolsRecord) tracked(begun int) int { return min(begun, legacyCache) }

func (r *toolsRecord) close() { r.Shutdown() }
