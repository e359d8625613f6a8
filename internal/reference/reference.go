// Package reference makes references to objects, like k8s.io/client-go/tools/reference.
package reference

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/eventtext"
	"github.com/eventseries/eventseries/series"
)

var (
	errNilObject = errors.New("events: object is nil")
	errNoKind    = errors.New("events: object has no kind and is not in the scheme")
)

// Resolver makes references to objects. It caches the kinds of types, because a lookup in the
// scheme takes 90 ns and an allocation. It is safe for concurrent use.
type Resolver struct {
	// Scheme contains the kinds of types. It can be nil. Resolver looks up other types in the
	// scheme of client-go, so it also knows the types of Kubernetes.
	Scheme *runtime.Scheme

	// kinds holds the kinds of types without a TypeMeta, by the addresses of the types. Each
	// new type replaces the map, which never changes. There are few types, and a lookup takes
	// a fifth of the time of a sync.Map.
	kinds atomic.Pointer[map[uintptr]metav1.TypeMeta]
}

// Set sets ref, which is the zero value, to the reference to obj, which can be any value. The
// values are those of obj, and can be invalid. With an error, ref remains zero.
func (r *Resolver) Set(ref *series.Reference, obj runtime.Object) error {
	switch o := obj.(type) {
	case nil:
		return errNilObject
	case *corev1.ObjectReference:
		if o != nil {
			*ref = series.ReferenceOf(o)
			return nil
		}
	case *unstructured.Unstructured:
		if o != nil && unstructuredReference(o, ref) {
			return nil
		}
	}
	return r.setByMethods(ref, obj)
}

// setByMethods is Set for any type of object. Its methods are code of the user, so it
// recovers from their panics.
func (r *Resolver) setByMethods(ref *series.Reference, obj runtime.Object) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("events: object of type %T cannot be referenced: panic: %s", obj, eventtext.Panic(p))
		}
		if err != nil {
			*ref = series.Reference{}
		}
	}()
	if v := reflect.ValueOf(obj); v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("%w: (%T)(nil)", errNilObject, obj)
	}
	object, _ := meta.Accessor(obj) // nil for a list, whose reference has no name
	k, err := r.kindOf(obj)
	switch {
	case err != nil && object != nil: // the log must say which one
		return fmt.Errorf("%w %s", err, eventtext.Cut(klog.KRef(object.GetNamespace(), object.GetName()).String(), 512))
	case err != nil:
		return err
	}
	ref.APIVersion, ref.Kind = k.APIVersion, k.Kind
	if object != nil {
		ref.Namespace, ref.Name, ref.UID = object.GetNamespace(), object.GetName(), object.GetUID()
		return nil
	}
	if _, err := meta.CommonAccessor(obj); err != nil {
		return fmt.Errorf("events: object of type %T has no metadata: %w", obj, err)
	}
	return nil
}

func (r *Resolver) kindOf(obj runtime.Object) (kind metav1.TypeMeta, err error) {
	objectKind := obj.GetObjectKind()
	// A TypeMeta has the form of a reference. Parsing and formatting it takes 60 ns
	// and an allocation.
	typeMeta, ok := objectKind.(*metav1.TypeMeta)
	switch {
	case ok && typeMeta.APIVersion == "" && typeMeta.Kind == "":
	case ok && isGroupVersion(typeMeta.APIVersion):
		return *typeMeta, nil
	default:
		if gvk := objectKind.GroupVersionKind(); !gvk.Empty() {
			kind.APIVersion, kind.Kind = gvk.ToAPIVersionAndKind()
			return kind, nil
		}
	}
	t := reflect.ValueOf(reflect.TypeOf(obj)).Pointer()
	kinds := r.kinds.Load()
	if kinds != nil {
		if k, ok := (*kinds)[t]; ok {
			return k, nil
		}
	}
	gvk, ok := kindIn(r.Scheme, obj)
	if !ok {
		if gvk, ok = kindIn(scheme.Scheme, obj); !ok {
			return kind, fmt.Errorf("%w: %T", errNoKind, obj)
		}
	}
	kind.APIVersion, kind.Kind = gvk.ToAPIVersionAndKind()
	more := map[uintptr]metav1.TypeMeta{t: kind}
	if kinds != nil {
		maps.Copy(more, *kinds)
	}
	r.kinds.CompareAndSwap(kinds, &more) // otherwise the next event adds it
	return kind, nil
}

// kindIn returns the kind that a scheme, which can be nil, has for the type of obj.
func kindIn(s *runtime.Scheme, obj runtime.Object) (gvk schema.GroupVersionKind, ok bool) {
	if s == nil {
		return gvk, false
	}
	gvks, _, err := s.ObjectKinds(obj)
	if err != nil || len(gvks) == 0 {
		return gvk, false
	}
	return gvks[0], true
}

// isGroupVersion reports whether schema.ParseGroupVersion accepts s, and
// GroupVersion.String returns it unchanged.
func isGroupVersion(s string) bool {
	slash := strings.IndexByte(s, '/')
	return slash < 0 || slash > 0 && strings.IndexByte(s[slash+1:], '/') < 0
}

// unstructuredReference sets ref to a reference to o. ok is false if o does not have the
// usual form. The methods of o look up the metadata for each field and parse the
// version, which takes 80 ns more.
func unstructuredReference(o *unstructured.Unstructured, ref *series.Reference) (ok bool) {
	apiVersion, _ := o.Object["apiVersion"].(string)
	kind, _ := o.Object["kind"].(string)
	metadata, _ := o.Object["metadata"].(map[string]any)
	if apiVersion == "" || kind == "" || !isGroupVersion(apiVersion) {
		return false
	}
	ref.APIVersion, ref.Kind = apiVersion, kind
	ref.Namespace, _ = metadata["namespace"].(string)
	ref.Name, _ = metadata["name"].(string)
	uid, _ := metadata["uid"].(string)
	ref.UID = types.UID(uid)
	return true
}
