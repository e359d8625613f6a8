// Package make creates a manager. // want package:`stock "example.com/testdata/lint/apart/make/make.go:7"`
package make

import ctrl "sigs.k8s.io/controller-runtime"

// Manager creates one.
func Manager() (ctrl.Manager, error) { return ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{}) }
