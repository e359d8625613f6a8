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

// Backup has a namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=bk
type Backup struct { // want Backup:"namespaced"
	metav1.TypeMeta
	metav1.ObjectMeta
}

// DeepCopyObject copies.
func (b *Backup) DeepCopyObject() runtime.Object { return b }

// Restore has one, too, because no marker says otherwise.
//
// +genclient
type Restore struct { // want Restore:"namespaced"
	metav1.TypeMeta
	metav1.ObjectMeta
}

// DeepCopyObject copies.
func (r *Restore) DeepCopyObject() runtime.Object { return r }

// Spec is no object.
type Spec struct{}
