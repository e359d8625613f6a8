package record

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/internal/legacyrecorder"
)

// identity is what the Events of a recorder say about it: reportingController and
// reportingInstance.
type identity struct{ controller, instance string }

// sources are the sources of recorders by their identities. Events show them as the callers
// pass them, although the API server restricts reportingController and reportingInstance.
// Each identity has one source, so that the events of different sources have different
// keys. The zero value needs a cache. It is safe for concurrent use.
type sources struct {
	mu   sync.Mutex
	live map[identity]*liveSource
	// gone are the latest sources whose recorders have been garbage collected. Their Events
	// can still wait to be written.
	gone *lru.Cache
}

// keptSources is the size of the cache of sources whose recorders are gone.
const keptSources = 1000

// liveSource is the source of recorders that are in use.
type liveSource struct {
	corev1.EventSource
	recorders int
}

// of returns the source of an identity.
func (s *sources) of(id identity) (source corev1.EventSource, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ofLocked(id)
}

func (s *sources) ofLocked(id identity) (source corev1.EventSource, ok bool) {
	if live, ok := s.live[id]; ok {
		return live.EventSource, true
	}
	if gone, ok := s.gone.Get(id); ok {
		source, ok = gone.(corev1.EventSource)
		return source, ok
	}
	return source, false
}

// claim says that a recorder uses an identity for its source, until it calls release. If
// the identity has another source, claim returns that one and false.
func (s *sources) claim(id identity, source corev1.EventSource) (other corev1.EventSource, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, ok := s.ofLocked(id); ok && other != source {
		return other, false
	}
	if s.live == nil {
		s.live = make(map[identity]*liveSource)
	}
	live := s.live[id]
	if live == nil {
		live = &liveSource{EventSource: source}
		s.live[id] = live
		s.gone.Remove(id)
	}
	live.recorders++
	return source, true
}

// release says that a recorder is gone.
func (s *sources) release(id identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.live[id]
	if live.recorders--; live.recorders == 0 {
		delete(s.live, id)
		s.gone.Add(id, live.EventSource)
	}
}

// distinguish returns what to use as the source of a recorder instead of its own, which has
// an identity that another source uses. A component becomes another controller. The
// controller of leader election stays: its name is documented.
func distinguish(source, other corev1.EventSource, id identity, attempt int) corev1.EventSource {
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%q %q %d", source.Component, source.Host, attempt)
	suffix := fmt.Sprintf("-%08x", hash.Sum32())
	if source.Component == other.Component || id.controller == compat.LeaderElection {
		return corev1.EventSource{Component: source.Component, Host: id.instance + suffix}
	}
	return corev1.EventSource{Component: id.controller + suffix, Host: source.Host}
}

// recorder is a legacy recorder whose source is in use until it is garbage collected.
type recorder struct {
	*legacyrecorder.Recorder
	origin *recorder // of a result of WithLogger
}

// Identity returns the reporting controller and the reporting instance of the Events.
func (r *recorder) Identity() (controller, instance string) {
	return r.Target().(interface {
		Identity() (controller, instance string)
	}).Identity()
}

// WithLogger returns a recorder that logs problems with its events to logger.
func (r *recorder) WithLogger(logger klog.Logger) EventRecorderLogger {
	to := r.Recorder.WithLogger(logger).(*legacyrecorder.Recorder)
	return &recorder{to, cmp.Or(r.origin, r)}
}
