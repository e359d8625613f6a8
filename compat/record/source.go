package record

import (
	"fmt"
	"hash/fnv"
	"sync"

	corev1 "k8s.io/api/core/v1"
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
	mu    sync.Mutex // so that an identity is not claimed twice
	known *lru.Cache // corev1.EventSource by identity
}

// maxSources is how many sources are known: those that were used last. Events of others show their
// identity as source.
const maxSources = 10_000

// of returns the source of an identity.
func (s *sources) of(id identity) (source corev1.EventSource, ok bool) {
	known, _ := s.known.Get(id)
	source, ok = known.(corev1.EventSource)
	return source, ok
}

// claim makes source that of an identity. If the identity has another source, claim returns that one and
// false.
func (s *sources) claim(id identity, source corev1.EventSource) (other corev1.EventSource, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, ok := s.of(id); ok {
		return other, other == source
	}
	s.known.Add(id, source)
	return source, true
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

// identityOf returns the identity of the Events of a recorder.
func identityOf(r *legacyrecorder.Recorder) (id identity) {
	id.controller, id.instance = r.Target().(interface {
		Identity() (controller, instance string)
	}).Identity()
	return id
}
