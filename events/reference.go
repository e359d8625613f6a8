package events

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/series"
)

var (
	errNilObject = errors.New("events: object is nil")
	errNoKind    = errors.New("events: kind of object is unknown: it is not in the scheme and does not say it itself")
)

// references makes references to objects, as k8s.io/client-go/tools/reference
// does, but looks a type up in the scheme once and not each time: that takes 90 ns
// more and an allocation. It may be used concurrently.
type references struct {
	scheme *runtime.Scheme // nil: objects must say their kind themselves

	types sync.Map // reflect.Type to kind, for objects that do not say it
}

type kind struct{ apiVersion, kind string }

// of returns the reference to obj, in the words of obj: see fitReference. obj comes
// from the caller and can be anything; a panic in its methods is an error here.
func (r *references) of(obj runtime.Object) (ref series.Reference, err error) {
	defer func() {
		if p := recover(); p != nil {
			ref, err = series.Reference{}, fmt.Errorf("events: object of type %T cannot be referenced: panic: %v", obj, p)
		}
	}()
	switch o := obj.(type) {
	case nil:
		return ref, errNilObject
	case *corev1.ObjectReference:
		if o == nil {
			return ref, fmt.Errorf("%w: (%T)(nil)", errNilObject, obj)
		}
		return series.ReferenceOf(o), nil
	case *unstructured.Unstructured:
		if o != nil && referUnstructured(o, &ref) {
			return ref, nil
		}
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
		return ref, nil
	}
	if _, err := meta.CommonAccessor(obj); err != nil {
		return series.Reference{}, fmt.Errorf("events: object of type %T has no metadata: %w", obj, err)
	}
	return ref, nil
}

func (r *references) kindOf(obj runtime.Object) (kind, error) {
	objectKind := obj.GetObjectKind()
	// The usual one says it in the form that a reference has. To parse that and put
	// it together again takes 60 ns and an allocation.
	said, ok := objectKind.(*metav1.TypeMeta)
	switch {
	case ok && said.APIVersion == "" && said.Kind == "":
	case ok && isGroupVersion(said.APIVersion):
		return kind{said.APIVersion, said.Kind}, nil
	default:
		if gvk := objectKind.GroupVersionKind(); !gvk.Empty() {
			return kind{gvk.GroupVersion().String(), gvk.Kind}, nil
		}
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

// isGroupVersion reports whether schema.ParseGroupVersion and GroupVersion.String
// give s back as it is.
func isGroupVersion(s string) bool {
	slash := strings.IndexByte(s, '/')
	return slash < 0 || slash > 0 && strings.IndexByte(s[slash+1:], '/') < 0
}

// referUnstructured makes a reference of what o says, if it says it in the usual
// form. Its methods look for the metadata each anew and parse the version, which takes
// 80 ns more.
func referUnstructured(o *unstructured.Unstructured, ref *series.Reference) (ok bool) {
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
