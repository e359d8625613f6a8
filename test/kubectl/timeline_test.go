package kubectl

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestTimelineOfPod creates Events about a Pod and the objects around it, and about others
// that differ in one thing.
func TestTimelineOfPod(t *testing.T) {
	namespace, other := apiserver.Namespace(t), apiserver.Namespace(t)
	clients := apiserver.Clientset(t)
	kubeconfig := apiserver.Kubeconfig(t)
	labels := map[string]string{"app": "web"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app"}}},
	}
	set, err := clients.AppsV1().ReplicaSets(namespace).Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	created, err := clients.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-0", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID}},
		},
		Spec: template.Spec,
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	ref := func(apiVersion, kind, namespace, name string, uid types.UID) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, UID: uid}
	}
	pod := ref("v1", "Pod", namespace, "web-0", created.UID)
	container := pod
	container.FieldPath = "spec.containers{app}"
	noUID, noVersion := pod, pod
	noUID.UID, noVersion.APIVersion = "", ""
	replicaSet := ref("apps/v1", "ReplicaSet", namespace, "web", set.UID)
	node := ref("v1", "Node", "", "worker-3", "worker-3")
	claim := ref("v1", "PersistentVolumeClaim", namespace, "data-web-0", "uid-of-claim")

	var events []*eventsv1.Event
	event := func(name string, regarding corev1.ObjectReference, related *corev1.ObjectReference) *eventsv1.Event {
		in := regarding.Namespace
		if in == "" {
			in = "default"
		}
		e := newEvent(in, namespace+"."+name, regarding)
		e.Related = related
		events = append(events, e)
		return e
	}
	event("about", pod, nil)
	event("container", container, nil)
	event("no-uid", noUID, nil)
	event("no-version", noVersion, nil)
	event("scheduled", pod, &node)
	event("node-related", node, &pod)
	event("claim-related", claim, &pod)
	event("set-related", replicaSet, &pod)
	event("labeled", replicaSet, &pod).Labels = map[string]string{"eventseries.dev/related-uid": string(created.UID)}
	concerned := len(events)
	event("set", replicaSet, nil)
	withOwners := len(events)

	earlier := ref("v1", "Pod", namespace, "web-0", "uid-of-the-earlier-pod")
	before := event("earlier", earlier, nil)
	before.EventTime = metav1.NewMicroTime(before.EventTime.Add(-1e10))
	event("other-name", ref("v1", "Pod", namespace, "web-00", "other"), nil)
	event("other-namespace", ref("v1", "Pod", other, "web-0", "other"), nil)
	event("other-kind", ref("v1", "Service", namespace, "web-0", "other"), nil)
	event("other-group", ref("example.com/v1", "Pod", namespace, "web-0", "other"), nil)
	event("other-related", replicaSet, &[]corev1.ObjectReference{ref("v1", "Pod", namespace, "web-1", "other")}[0])
	event("node", node, nil)
	event("claim", claim, nil)
	create(t, clients, events, nil)

	// Events of the controllers of a cluster may exist, too.
	ours := func(out string) (all []string) {
		for line := range strings.Lines(out) {
			name := strings.TrimPrefix(strings.TrimSpace(line), "event.events.k8s.io/")
			if short, ok := strings.CutPrefix(name, namespace+"."); ok {
				all = append(all, short)
			}
		}
		slices.Sort(all)
		return all
	}
	wanted := func(n int, more ...string) (all []string) {
		for _, e := range events[:n] {
			all = append(all, strings.TrimPrefix(e.Name, namespace+"."))
		}
		all = append(all, more...)
		slices.Sort(all)
		return all
	}
	args := []string{"timeline", "pod/web-0", "-n", namespace, "-o", "name"}
	assert.Equal(t, wanted(5), ours(show(t, kubeconfig, args...)))
	args = append(args, "--related")
	assert.Equal(t, wanted(concerned), ours(show(t, kubeconfig, args...)))
	assert.Equal(t, wanted(concerned, "earlier"), ours(show(t, kubeconfig, append(args, "--earlier")...)))
	// Without its UID, the Event could be about the earlier Pod.
	assert.Equal(t, []string{"earlier", "no-uid"}, ours(show(t, kubeconfig, append(args, "--uid", "uid-of-the-earlier-pod")...)))
	assert.Equal(t, wanted(withOwners, "other-related"), ours(show(t, kubeconfig, append(args, "--owners")...)))

	page := show(t, kubeconfig, "timeline", "po", "web-0", "-n", namespace, "--related")
	assert.Contains(t, page, "9 series, 0 ongoing")
	assert.Contains(t, page, "1 object had this name before")
	file := filepath.Join(t.TempDir(), "timeline.svg")
	assert.Empty(t, show(t, kubeconfig, "timeline", "pod/web-0", "-n", namespace, "-o", "svg", "--file", file))
	drawn, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.NoError(t, xml.Unmarshal(drawn, new(struct{})))

	nodes := ours(show(t, kubeconfig, "timeline", "node/worker-3", "-n", namespace, "-o", "name", "--related"))
	assert.Equal(t, []string{"node", "node-related", "scheduled"}, nodes)
}
