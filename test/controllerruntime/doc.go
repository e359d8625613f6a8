// Package controllerruntime tests recorders under managers of controller-runtime. It
// also contains the code in docs/manager.md: a manager that provides recorders of this
// project.
//
// The package is for controller-runtime v0.25. With the build tag
// controller_runtime_v0_24, it is for v0.23 and v0.24.
package controllerruntime
