// Package emit emits events that the linter reports.
package emit

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

const reason = "Started"

func emit(r events.EventRecorder, pod *corev1.Pod, node *corev1.Node, variable string, err error) {
	r.Eventf(pod, node, "Normal", reason, "Start", "fine %s", variable)
	r.Eventf(pod, nil, "Normal", variable, "Start", "note")                   // want `the reason is variable`
	r.Eventf(pod, nil, "Normal", reason, variable, "note")                    // want `the action is variable`
	r.Eventf(pod, nil, "Normal", err.Error(), "Start", "note")                // want `the reason comes from a message`
	r.Eventf(pod, nil, "Normal", "Created-"+pod.Name, "Start", "note")        // want `the reason contains the name of an object`
	r.Eventf(pod, nil, "Normal", reason, fmt.Sprintf("a%d", 1), "note")       // want `the action is formatted`
	r.Eventf(pod, nil, "Normal", reason, "Started", "note")                   // want `the action equals the reason "Started"`
	r.Eventf(pod, nil, "Normal", "not_camel", "Start", "note")                // want `the reason "not_camel" is not in UpperCamelCase`
	r.Eventf(pod, nil, "Normal", reason, "", "note")                          // want `the action is empty`
	r.Eventf(pod, nil, "Normal", reason, "Start", variable)                   // want `the format of the note is variable`
	r.Eventf(pod, nil, "Normal", reason, "Start", variable, 1)                // want `the format of the note is variable`
	r.Eventf(pod, nil, "Normal", reason, "Start", fmt.Sprintf("a %d", 1))     // want `Sprintf builds the note`
	r.Eventf(pod, nil, "Normal", reason, "Start", "%s", fmt.Sprintf("%d", 1)) // want `Sprintf builds the note`
	r.Eventf(node, pod, "Normal", reason, "Start", "note")                    // want `the regarding object is cluster-scoped`
	r.Eventf(node, &corev1.ObjectReference{}, "Normal", reason, "Start", "note")
}

func legacy(r record.EventRecorder, pod *corev1.Pod, variable string) {
	r.Event(pod, "Normal", variable, "note")                    // want `the reason is variable`
	r.Event(pod, "Normal", reason, fmt.Sprintf("%s", variable)) // want `Sprintf builds the message`
	r.Event(pod, "Normal", reason, variable)
}

// cardinality emits reasons that take any number of values.
func cardinality(r events.EventRecorder, pod *corev1.Pod, err error, code int) {
	r.Eventf(pod, nil, "Normal", pod.Name, "Start", "note")             // want `the reason contains the name of an object`
	r.Eventf(pod, nil, "Normal", pod.GetNamespace(), "Start", "note")   // want `the reason contains the name of an object`
	r.Eventf(pod, nil, "Normal", reason, "Start"+string(pod.UID), "n")  // want `the action contains the name of an object`
	r.Eventf(pod, nil, "Normal", fmt.Sprint("Pod", pod.Name), "S", "n") // want `the reason contains the name of an object`
	r.Eventf(pod, nil, "Normal", strconv.Itoa(code), "Start", "note")   // want `the reason contains a number`
	formatted := fmt.Sprintf("Failed%d", code)
	r.Eventf(pod, nil, "Normal", formatted, "Start", "note") // want `the reason is formatted`
	message := "Failed"
	if err != nil {
		message = err.Error()
	}
	r.Eventf(pod, nil, "Normal", message, "Start", "note") // want `the reason comes from a message`
	name := pod.Name
	r.Eventf(pod, nil, "Normal", reason, name, "note") // want `the action contains the name of an object`
	bounded := "Started"
	if err != nil {
		bounded = "Failed"
	}
	r.Eventf(pod, nil, "Normal", bounded, "Start", "note") // want `the reason is variable`
	looped := "Started"
	looped = looped + looped
	r.Eventf(pod, nil, "Normal", looped, "Start", "note") // want `the reason is formatted`
}

// once has variables with one value, and some with more.
func once(r events.EventRecorder, pod *corev1.Pod, given, template string, args ...any) {
	reason := "Recycled"
	r.Eventf(pod, nil, "Normal", reason, "Recycle", "note")
	lower := "recycled"
	r.Eventf(pod, nil, "Normal", lower, "Recycle", "note") // want `the reason "recycled" is not in UpperCamelCase`
	if given == "" {
		given = "Recycled"
	}
	r.Eventf(pod, nil, "Normal", given, "Recycle", "note") // want `the reason is variable`
	var late string
	if template != "" {
		late = "Recycled"
	}
	r.Eventf(pod, nil, "Normal", late, "Recycle", "note") // want `the reason is variable`
	ranged := "Recycled"
	for _, ranged = range []string{"Started", "Stopped"} {
		r.Eventf(pod, nil, "Normal", ranged, "Recycle", "note") // want `the reason is variable`
	}
	pointed := "Recycled"
	fill(&pointed)
	r.Eventf(pod, nil, "Normal", pointed, "Recycle", "note") // want `the reason is variable`
	r.Eventf(pod, nil, "Normal", reason, "Recycle", "%s", fmt.Sprintf(template, args...))
	r.Eventf(pod, nil, "Normal", reason, "Recycle", fmt.Sprintf(template, args...)) // want `the format of the note is variable`
}

func fill(s *string) { *s += "Twice" }

type controller struct{ kept, lost record.EventBroadcaster }

func broadcasters(ctx context.Context, client kubernetes.Interface) record.EventBroadcaster {
	local := record.NewBroadcaster() // want `nothing shuts down the broadcaster`
	local.StartStructuredLogging(0)
	shut := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	defer shut.Shutdown()
	kept := record.NewBroadcaster()
	c := &controller{kept: kept, lost: record.NewBroadcaster()} // want `nothing shuts down the broadcaster`
	defer c.kept.Shutdown()
	returned := record.NewBroadcaster()
	return returned
}

func parentheses(r events.EventRecorder, pod *corev1.Pod) {
	r.Eventf(pod, nil, "Normal", reason, "Start", (fmt.Sprintf("a %d", 1))) // want `Sprintf builds the note`
}

// fake formats messages itself.
type fake struct{}

func (fake) Event(runtime.Object, string, string, string) {}

func (f fake) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	f.Event(object, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

// Only the callers know what happened, and what the controller did.
func passOn(r events.EventRecorder, pod *corev1.Pod, reason, action, format string, args ...any) {
	r.Eventf(pod, nil, "Normal", reason, action, format, args...)
}
