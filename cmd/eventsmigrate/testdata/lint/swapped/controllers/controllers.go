// Package controllers has changed its import. // want package:`swapped "example.com/testdata/lint/swapped/controllers", stock "", series false`
package controllers

import (
	"github.com/eventseries/eventseries/compat/record"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Recorder returns a recorder of the manager.
func Recorder(mgr ctrl.Manager) record.EventRecorder { return mgr.GetEventRecorderFor("a") }
