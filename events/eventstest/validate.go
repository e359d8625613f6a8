package eventstest

import (
	"fmt"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/eventseries/eventseries/internal/fakeapi"
)

// Validate returns the problems, of class [ClassRules], for which kube-apiserver v1.36
// refuses to create an Event through events.k8s.io/v1. If there are none, the server
// creates the Event, provided that its namespace exists and the client may create
// Events there.
//
// Fields have their names in events.k8s.io/v1. kube-apiserver reports some of them
// under their names in core/v1: "message" for note, and "involvedObject.namespace" for
// regarding.namespace.
func Validate(event *eventsv1.Event) (problems []Problem) {
	for _, err := range fakeapi.ValidateCreate(event) {
		p := Problem{Class: ClassRules, Field: err.Field, Detail: err.Detail}
		if err.Type == field.ErrorTypeRequired {
			p.Detail = "is required"
		} else if err.BadValue != nil {
			p.Value = fmt.Sprint(err.BadValue)
		}
		problems = append(problems, p)
	}
	return problems
}
