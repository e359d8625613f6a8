// Package values has reasons in variables, and names that are formatted.
package values

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

func reasons(r record.EventRecorder, pod *corev1.Pod, given string) {
	reason := "VolumeRecycled"
	r.Event(pod, "Normal", reason, "done")
	if given == "" {
		given = "VolumeRecycled"
	}
	r.Event(pod, "Normal", given, "done")
	var late string
	if given != "" {
		late = "VolumeRecycled"
	}
	r.Event(pod, "Normal", late, "done")
	r.Event(pod, "Normal", fmt.Sprintf("Volume%s", given), "done")
}

func warnf(r record.EventRecorder, pod *corev1.Pod, template string, args ...any) {
	r.Event(pod, "Warning", "VolumeSynced", fmt.Sprintf(template, args...))
}

func recorders(driver string) []record.EventRecorder {
	b := record.NewBroadcaster()
	defer b.Shutdown()
	return []record.EventRecorder{
		b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: fmt.Sprintf("volume resizer %s", driver)}),
		b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "volume resizer " + driver}),
		b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: fmt.Sprintf("%s/volume-resizer.%-5d", driver, 1)}),
	}
}

// rules are those of the Pods of somebody else, perhaps.
func rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}}}
}
