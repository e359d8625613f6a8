// Package creates creates a manager.
package creates

import ctrl "sigs.k8s.io/controller-runtime"

// Manager returns a manager.
func Manager() (ctrl.Manager, error) {
	return ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
}
