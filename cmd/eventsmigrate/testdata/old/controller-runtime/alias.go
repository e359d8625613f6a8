// Package controllerruntime has the names of controller-runtime before v0.23 that programs
// create managers with.
package controllerruntime

import "sigs.k8s.io/controller-runtime/pkg/manager"

// Options of a manager.
type Options = manager.Options

// Manager has recorders.
type Manager = manager.Manager

// NewManager creates a manager.
var NewManager = manager.New
