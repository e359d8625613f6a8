// Package tests has recorders in its tests only.
package tests

// +kubebuilder:rbac:groups="",resources=events,verbs=create;update
const name = "tests"
