// Package controllerruntime tests the recorder under managers of
// controller-runtime, and has the code that docs/manager.md shows: a manager whose
// recorders are those of this project.
//
// It is for controller-runtime v0.25. With the build tag controller_runtime_v0_24
// it is for v0.23 and v0.24.
package controllerruntime
