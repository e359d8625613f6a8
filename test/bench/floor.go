package bench

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// floor is a counter of occurrences: it reads the time, hashes the strings of the key, finds an
// entry in a map under a lock, and adds one. Like a recorder, it calls the methods of the object for its namespace, name and UID.
type floor struct {
	mu     sync.Mutex
	counts map[floorKey]*floorEntry
}

type floorKey struct {
	regarding, related                              floorReference
	eventtype, reason, action, controller, instance string
}

type floorReference struct{ apiVersion, kind, namespace, name, uid, fieldPath string }

type floorEntry struct {
	count int
	last  time.Time
}

func (f *floor) eventf(s *subject) {
	k := floorKey{
		regarding:  referenceTo(s.regarding),
		eventtype:  corev1.EventTypeWarning,
		reason:     reason,
		action:     action,
		controller: controller,
		instance:   "backup-0",
	}
	if s.related != nil {
		k.related = referenceTo(s.related)
	}
	now := time.Now()
	f.mu.Lock()
	e := f.counts[k]
	if e == nil {
		e = &floorEntry{}
		f.counts[k] = e
	}
	e.count++
	e.last = now
	f.mu.Unlock()
}

func referenceTo(o *object) floorReference {
	switch to := o.Object.(type) {
	case *corev1.ObjectReference:
		return floorReference{to.APIVersion, to.Kind, to.Namespace, to.Name, string(to.UID), to.FieldPath}
	case metav1.Object:
		return floorReference{o.apiVersion, o.kind, to.GetNamespace(), to.GetName(), string(to.GetUID()), ""}
	default:
		return floorReference{}
	}
}

func (*floor) close() {}

func (f *floor) tracked(int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.counts)
}
