// Package vet emits events about types of another package.
package vet

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"

	"example.com/testdata/api"
)

func emit(old record.EventRecorder, r events.EventRecorder, o runtime.Object) {
	old.Event(o, "Normal", "Created", "done")
	r.Eventf(&api.Site{}, &api.Backup{}, "Normal", "Created", "Create", "done")
	r.Eventf(&api.Backup{}, &api.Site{}, "Normal", "Created", "Create", "done")
}
