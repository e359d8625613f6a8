// Package controllerruntime tests recorders under managers of controller-runtime on a
// real server. The code in docs/manager.md and docs/migration.md is here, too.
package controllerruntime
