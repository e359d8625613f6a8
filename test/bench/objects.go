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

// Fields of all events in the measurements.
const (
	controller = "example.com/backup-controller"
	reason     = "BackOff"
	action     = "StartingContainer"
	note       = "Back-off restarting failed container %s in pod %s"
)

// noteArgs exists once, since its allocation is a cost of the caller.
var noteArgs = []any{"sidecar", "checkout-service-7d9f8b6c5d-x2v4q"}

// Forms are the forms of objects, in the order of the report.
var Forms = []string{"typed", "typed with TypeMeta", "Unstructured", "PartialObjectMetadata", "ObjectReference"}

// names identify a Pod of a Deployment.
type names struct{ namespace, name, uid string }

// namespaces is the number of namespaces of the Pods.
const namespaces = 200

// podNames returns the names of the i-th Pod, in newly allocated strings.
func podNames(i int) names {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, i)
	x := h.Sum64()
	return names{
		namespace: fmt.Sprintf("team-%03d-production", i%namespaces),
		name:      fmt.Sprintf("checkout-service-%03d-%010x-%06x", i%1000, x>>24, i),
		uid:       fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(x), uint16(x>>32), x>>48&0xfff, x>>52&0xfff, i),
	}
}

// object is an object with the strings that follow from its type, for the floor.
type object struct {
	runtime.Object
	apiVersion, kind string
}

// makeObject returns an object in one of Forms.
func makeObject(form, kind string, n names) *object {
	const apiVersion, resourceVersion = "v1", "4711"
	typeMeta := metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
	objectMeta := metav1.ObjectMeta{Namespace: n.namespace, Name: n.name, UID: types.UID(n.uid), ResourceVersion: resourceVersion}
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
		o.Object = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind,
			"metadata": map[string]any{"namespace": n.namespace, "name": n.name, "uid": n.uid, "resourceVersion": resourceVersion},
		}}
	case "PartialObjectMetadata":
		o.Object = &metav1.PartialObjectMetadata{TypeMeta: typeMeta, ObjectMeta: objectMeta}
	case "ObjectReference":
		o.Object = &corev1.ObjectReference{
			APIVersion: apiVersion, Kind: kind, Namespace: n.namespace, Name: n.name, UID: types.UID(n.uid), ResourceVersion: resourceVersion,
		}
	default:
		panic(fmt.Sprintf("bench: no form %q", form))
	}
	return o
}

// subject is the objects of an event. related may be nil.
type subject struct{ regarding, related *object }

// objects returns the arguments for Eventf.
func (s *subject) objects() (regarding, related runtime.Object) {
	if s.related != nil {
		related = s.related.Object
	}
	return s.regarding.Object, related
}

// newSubject returns the i-th subject in the given form.
func newSubject(form string, related bool, i int) subject {
	s := subject{regarding: makeObject(form, "Pod", podNames(i))}
	if related {
		n := podNames(i)
		n.name = fmt.Sprintf("data-checkout-%06x", i)
		s.related = makeObject(form, "PersistentVolumeClaim", n)
	}
	return s
}

// references returns n subjects that are *ObjectReference, the smallest form. They
// share no strings.
func references(n int) []subject {
	subjects := make([]subject, n)
	for i := range subjects {
		subjects[i] = newSubject("ObjectReference", false, i)
	}
	return subjects
}
