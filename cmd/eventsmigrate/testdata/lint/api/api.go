// Package api has types.
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Site has no namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
type Site struct { // want Site:"clusterScoped"
	metav1.TypeMeta
	metav1.ObjectMeta
}

// DeepCopyObject copies.
func (s *Site) DeepCopyObject() runtime.Object { return s }
