// Package api has types with markers, which go vet passes on as facts.
package api

// Site has no namespace.
//
// +kubebuilder:resource:scope=Cluster
type Site struct{}

// Backup has a namespace.
//
// +kubebuilder:resource:scope=Namespaced
type Backup struct{}
