package bench

import (
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// What all events say that are measured.
const (
	controller = "example.com/backup-controller"
	reason     = "BackOff"
	action     = "StartingContainer"
	note       = "Back-off restarting failed container %s in pod %s"
)

// noteArgs are the arguments of note. They are made once: what a call's variadic
// arguments cost is the caller's.
var noteArgs = []any{"sidecar", "checkout-service-7d9f8b6c5d-x2v4q"}

// Forms are the forms in which objects come, in the order in which they are
// reported.
var Forms = []string{"typed", "typed with TypeMeta", "Unstructured", "PartialObjectMetadata", "ObjectReference"}

// names are the strings that tell Pods apart, as a Deployment's have them.
type names struct{ namespace, name, uid string }

// podNames returns the names of the i-th Pod. Every call makes new strings.
func podNames(i int) names {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, i)
	x := h.Sum64()
	return names{
		namespace: fmt.Sprintf("team-%03d-production", i%200),
		name:      fmt.Sprintf("checkout-service-%03d-%010x-%06x", i%1000, x>>24, i),
		uid:       fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(x), uint16(x>>32), x>>48&0xfff, x>>52&0xfff, i),
	}
}

// object is one that events are about, with the strings of it that a recorder that
// knows the type need not look up. The floor gets them ready-made.
type object struct {
	runtime.Object
	apiVersion, kind string
}

// makeObject returns an object in one of Forms.
func makeObject(form, kind string, n names) *object {
	const apiVersion = "v1"
	typeMeta := metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
	objectMeta := metav1.ObjectMeta{Namespace: n.namespace, Name: n.name, UID: types.UID(n.uid), ResourceVersion: "4711"}
	o := &object{apiVersion: apiVersion, kind: kind}
	switch form {
	case "typed", "typed with TypeMeta":
		if form == "typed" {
			typeMeta = metav1.TypeMeta{}
		}
		if kind == "Pod" {
			o.Object = &corev1.Pod{TypeMeta: typeMeta, ObjectMeta: objectMeta}
		} else {
			o.Object = &corev1.PersistentVolumeClaim{TypeMeta: typeMeta, ObjectMeta: objectMeta}
		}
	case "Unstructured":
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		u.SetNamespace(n.namespace)
		u.SetName(n.name)
		u.SetUID(types.UID(n.uid))
		u.SetResourceVersion("4711")
		o.Object = u
	case "PartialObjectMetadata":
		o.Object = &metav1.PartialObjectMetadata{TypeMeta: typeMeta, ObjectMeta: objectMeta}
	case "ObjectReference":
		o.Object = &corev1.ObjectReference{
			APIVersion: apiVersion, Kind: kind, Namespace: n.namespace, Name: n.name, UID: types.UID(n.uid), ResourceVersion: "4711",
		}
	default:
		panic(fmt.Sprintf("bench: no form %q", form))
	}
	return o
}

// subject is what an event is about: related may be nil.
type subject struct{ regarding, related *object }

// about returns the objects as recorders take them: without a related one, nil.
func (s *subject) about() (regarding, related runtime.Object) {
	if s.related != nil {
		related = s.related.Object
	}
	return s.regarding.Object, related
}

// newSubject returns the i-th subject in a form.
func newSubject(form string, related bool, i int) subject {
	s := subject{regarding: makeObject(form, "Pod", podNames(i))}
	if related {
		n := podNames(i)
		n.name = fmt.Sprintf("data-checkout-%06x", i)
		s.related = makeObject(form, "PersistentVolumeClaim", n)
	}
	return s
}

// references returns n subjects that are *ObjectReference, the smallest form, which
// share no strings but those of their namespaces with each other.
func references(n int) []subject {
	subjects := make([]subject, n)
	for i := range subjects {
		subjects[i] = newSubject("ObjectReference", false, i)
	}
	return subjects
}
