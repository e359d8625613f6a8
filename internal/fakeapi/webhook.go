package fakeapi

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fields are the fields of an Event that identify its series, and its state, with functions
// that change them, as an admission webhook does.
var Fields = map[string]func(*eventsv1.Event){
	"reason":     func(e *eventsv1.Event) { e.Reason = "Changed" },
	"type":       func(e *eventsv1.Event) { e.Type = corev1.EventTypeWarning },
	"action":     func(e *eventsv1.Event) { e.Action = "Changing" },
	"uid":        func(e *eventsv1.Event) { e.Regarding.UID = "00000000-0000-4000-8000-00000000cafe" },
	"apiVersion": func(e *eventsv1.Event) { e.Regarding.APIVersion = "example.com/v1" },
	"controller": func(e *eventsv1.Event) { e.ReportingController = "example.com/changed" },
	"instance":   func(e *eventsv1.Event) { e.ReportingInstance = "changed" },
	"related":    func(e *eventsv1.Event) { e.Related = &corev1.ObjectReference{Kind: "Node", Name: "changed"} },
	"state":      func(e *eventsv1.Event) { metav1.SetMetaDataLabel(&e.ObjectMeta, "eventseries.dev/state", "odd") },
}
