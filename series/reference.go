package series

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reference names an object as far as it matters for telling series apart.
//
// It is a corev1.ObjectReference without resourceVersion: a controller that
// updates the status of its object while it reports on it changes the
// resourceVersion with every report, and no two reports would ever be the same.
// The zero value refers to nothing.
type Reference struct {
	APIVersion string    // group and version, such as "apps/v1"
	Kind       string    // such as "Pod"
	Namespace  string    // empty for what is cluster-scoped
	Name       string    // of the object
	UID        types.UID // of the object, empty if it is not known
	FieldPath  string    // the part of the object that is meant, if not all of it
}

// ReferenceOf returns what counts of ref. A nil ref gives the zero Reference.
func ReferenceOf(ref *corev1.ObjectReference) Reference {
	if ref == nil {
		return Reference{}
	}
	return Reference{
		APIVersion: ref.APIVersion,
		Kind:       ref.Kind,
		Namespace:  ref.Namespace,
		Name:       ref.Name,
		UID:        ref.UID,
		FieldPath:  ref.FieldPath,
	}
}

// IsZero reports whether r refers to nothing.
func (r Reference) IsZero() bool { return r == Reference{} }

// ObjectReference returns r as the API knows it, without a resourceVersion.
func (r Reference) ObjectReference() corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: r.APIVersion,
		Kind:       r.Kind,
		Namespace:  r.Namespace,
		Name:       r.Name,
		UID:        r.UID,
		FieldPath:  r.FieldPath,
	}
}
