package eventstest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"

	"github.com/eventseries/eventseries/internal/eventtext"
	"github.com/eventseries/eventseries/series"
)

var errNilObject = errors.New("object is nil")

// refer returns a reference to obj like that in an Event. If a method of obj panics, it
// returns an error.
func refer(s *runtime.Scheme, obj runtime.Object) (ref corev1.ObjectReference, err error) {
	defer func() {
		if p := recover(); p != nil {
			ref, err = corev1.ObjectReference{}, fmt.Errorf("cannot refer to object of type %T: panic: %s", obj, eventtext.Panic(p))
		}
	}()
	if isNil(obj) {
		return ref, errNilObject
	}
	found, err := reference.GetReference(s, obj)
	if err != nil { // the second choice of broadcasters, too
		if builtin, builtinErr := reference.GetReference(scheme.Scheme, obj); builtinErr == nil {
			found, err = builtin, nil
		}
	}
	if err != nil {
		return ref, fmt.Errorf("cannot refer to object of type %T: %w", obj, err)
	}
	return series.ReferenceOf(found).ObjectReference(), nil
}

// isNil reports whether obj is nil, or a nil pointer in an interface.
func isNil(obj runtime.Object) bool {
	if obj == nil {
		return true
	}
	v := reflect.ValueOf(obj)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// describe returns a reference for people, such as "Pod shop/cart-7".
func describe(ref corev1.ObjectReference) string {
	name := ref.Name
	if ref.Namespace != "" {
		name = ref.Namespace + "/" + name
	}
	words := make([]string, 0, 3)
	for _, word := range []string{ref.Kind, name, ref.FieldPath} {
		if word != "" {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return "no object"
	}
	return strings.Join(words, " ")
}
