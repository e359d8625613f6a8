package events

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/eventseries/eventseries/series"
)

var (
	errNilObject = errors.New("events: object is nil")
	errNoKind    = errors.New("events: kind of object is unknown: it is not in the scheme and does not say it itself")
)

// references makes references to objects, as k8s.io/client-go/tools/reference
// does, but remembers what it has found out about a type: looking it up in the
// scheme and joining group and version are what a reference costs most by. It
// may be used concurrently.
type references struct {
	scheme *runtime.Scheme // nil: objects must say their kind themselves

	types    sync.Map // reflect.Type to kind, for objects without TypeMeta
	versions versionStrings
}

type kind struct{ apiVersion, kind string }

// of returns the reference to obj. obj comes from the caller and can be
// anything; a panic in its methods is an error here.
func (r *references) of(obj runtime.Object) (ref series.Reference, err error) {
	defer func() {
		if p := recover(); p != nil {
			ref, err = series.Reference{}, fmt.Errorf("events: object of type %T cannot be referenced: panic: %v", obj, p)
		}
	}()
	if obj == nil {
		return ref, errNilObject
	}
	if o, ok := obj.(*corev1.ObjectReference); ok {
		if o == nil {
			return ref, fmt.Errorf("%w: (%T)(nil)", errNilObject, obj)
		}
		return fitReference(series.ReferenceOf(o)), nil
	}
	if v := reflect.ValueOf(obj); v.Kind() == reflect.Pointer && v.IsNil() {
		return ref, fmt.Errorf("%w: (%T)(nil)", errNilObject, obj)
	}
	k, err := r.kindOf(obj)
	if err != nil {
		return ref, err
	}
	ref.APIVersion, ref.Kind = k.apiVersion, k.kind

	// A list has no name, but can be referred to.
	var object metav1.Object
	switch o := obj.(type) {
	case metav1.Object:
		object = o
	case metav1.ObjectMetaAccessor:
		object = o.GetObjectMeta()
	}
	if object != nil {
		ref.Namespace, ref.Name, ref.UID = object.GetNamespace(), object.GetName(), object.GetUID()
		return fitReference(ref), nil
	}
	if _, err := meta.CommonAccessor(obj); err != nil {
		return series.Reference{}, fmt.Errorf("events: object of type %T has no metadata: %w", obj, err)
	}
	return ref, nil
}

func (r *references) kindOf(obj runtime.Object) (kind, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if !gvk.Empty() {
		return kind{r.versions.of(gvk.GroupVersion()), gvk.Kind}, nil
	}
	t := reflect.TypeOf(obj)
	if k, ok := r.types.Load(t); ok {
		return k.(kind), nil
	}
	if r.scheme == nil {
		return kind{}, fmt.Errorf("%w: %T", errNoKind, obj)
	}
	gvks, _, err := r.scheme.ObjectKinds(obj)
	if err != nil || len(gvks) == 0 {
		return kind{}, fmt.Errorf("%w: %T", errNoKind, obj)
	}
	k := kind{gvks[0].GroupVersion().String(), gvks[0].Kind}
	r.types.Store(t, k)
	return k, nil
}

// versionStrings remembers group versions as strings. Reading takes no lock; it
// is copied when something new comes, as there are few in a program.
type versionStrings struct {
	mu    sync.Mutex
	known atomic.Pointer[map[schema.GroupVersion]string]
}

// maxVersions bounds what is remembered: unstructured objects can say anything.
const maxVersions = 1000

func (v *versionStrings) of(gv schema.GroupVersion) string {
	if known := v.known.Load(); known != nil {
		if s, ok := (*known)[gv]; ok {
			return s
		}
	}
	s := gv.String()
	v.mu.Lock()
	defer v.mu.Unlock()
	var next map[schema.GroupVersion]string
	if known := v.known.Load(); known != nil && len(*known) < maxVersions {
		next = maps.Clone(*known)
	} else {
		next = make(map[schema.GroupVersion]string)
	}
	next[gv] = s
	v.known.Store(&next)
	return s
}
