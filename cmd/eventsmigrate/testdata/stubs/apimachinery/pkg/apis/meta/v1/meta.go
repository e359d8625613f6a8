// Package v1 has the types that the tests of the linter use.
package v1

import "k8s.io/apimachinery/pkg/types"

// TypeMeta is the kind of an object.
type TypeMeta struct{ Kind, APIVersion string }

// ObjectMeta is the identity of an object.
type ObjectMeta struct {
	Name, GenerateName, Namespace string
	UID                           types.UID
}

// GetNamespace returns the namespace.
func (m ObjectMeta) GetNamespace() string { return m.Namespace }
