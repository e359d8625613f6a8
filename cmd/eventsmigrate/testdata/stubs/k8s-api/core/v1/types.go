// Package v1 has the types that the tests of the linter use.
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Pod is namespaced.
type Pod struct{ metav1.ObjectMeta }

// GetObjectKind returns the kind.
func (*Pod) GetObjectKind() any { return nil }

// DeepCopyObject returns a copy.
func (*Pod) DeepCopyObject() any { return nil }

// Node is cluster-scoped.
type Node struct{ metav1.ObjectMeta }

// EventSource names a component.
type EventSource struct{ Component, Host string }

// ObjectReference can be any object.
type ObjectReference struct{ metav1.ObjectMeta }
