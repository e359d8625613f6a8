package series

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reference identifies an object as far as it matters to a [Key]. The zero value
// refers to nothing.
//
// It is a corev1.ObjectReference without resourceVersion. A controller that updates
// the status of its object in each reconciliation changes the resourceVersion each
// time, so no two of its events would be isomorphic.
type Reference struct {
	APIVersion string    // group and version, such as "apps/v1"
	Kind       string    // such as "Pod"
	Namespace  string    // empty for a cluster-scoped object
	Name       string    // of the object
	UID        types.UID // of the object; empty if unknown
	FieldPath  string    // part of the object, such as "spec.containers{app}"; empty for all of it
}

// ReferenceOf returns ref without what does not matter. For nil it returns the zero
// Reference.
func ReferenceOf(ref *corev1.ObjectReference) Reference {
	if ref == nil {
		return Reference{}
	}
	return Reference{
		APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace,
		Name: ref.Name, UID: ref.UID, FieldPath: ref.FieldPath,
	}
}

// IsZero reports whether r refers to nothing.
func (r Reference) IsZero() bool { return r == Reference{} }

// ObjectReference returns r as a type of the API, without a resourceVersion.
func (r Reference) ObjectReference() corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace,
		Name: r.Name, UID: r.UID, FieldPath: r.FieldPath,
	}
}
