package kubectl

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// legacyEvent returns an Event of the recorder of a kubelet that occurred last just now.
func legacyEvent(name string, regarding corev1.ObjectReference, node, reason string, count int32, lasted time.Duration) *corev1.Event {
	now, namespace := time.Now(), regarding.Namespace
	if namespace == "" {
		namespace = "default"
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, InvolvedObject: regarding,
		Type: "Warning", Reason: reason, Message: reason + " of " + regarding.FieldPath,
		Source: corev1.EventSource{Component: "kubelet", Host: node}, Count: count,
		FirstTimestamp: metav1.NewTime(now.Add(-lasted)), LastTimestamp: metav1.NewTime(now),
	}
}

func names(list string) []string {
	var all []string
	for _, line := range lines(list) {
		all = append(all, strings.TrimPrefix(line, "event.events.k8s.io/"))
	}
	return all
}

// TestObjectsThatAreHardToName looks objects up without a kind, in another namespace, without a
// namespace, and by a container.
func TestObjectsThatAreHardToName(t *testing.T) {
	const token = "token-of-viewer"
	server := apiserver.Start(t, controlplane.Options{Users: []controlplane.User{{Name: "viewer", Token: token}}})
	clients := apiserver.ClientsetFor(t, apiserver.ConfigOf(t, server))
	grant(t, clients, "shop", "viewer", "list")
	grant(t, clients, "other", "viewer", "list")
	apiserver.CreateNamespace(t, clients, "empty")
	container := func(name string) corev1.ObjectReference {
		pod := objectIn("shop", "Pod", "sidecar")
		pod.FieldPath = "spec.containers{" + name + "}"
		return pod
	}
	claim := objectIn("shop", "PersistentVolumeClaim", "data")
	relates := newEvent("shop", "relates", objectIn("shop", "Pod", "once"))
	relates.Related = &claim
	create(t, clients, events(relates, newEvent("shop", "web", objectIn("shop", "Pod", "web")), newEvent("other", "web", objectIn("other", "Pod", "web"))), []*corev1.Event{
		legacyEvent("app", container("app"), "worker-3", "BackOff", 9, time.Hour),
		legacyEvent("proxy", container("istio-proxy"), "worker-3", "BackOff", 9, time.Hour),
		legacyEvent("p-nons", corev1.ObjectReference{Kind: "Pod", Name: "p-nons"}, "worker-1", "Evicted", 1, 0),
	})
	as := func(args ...string) result { return run(t, server.Kubeconfig(), args...) }

	for _, args := range []string{"once", "once -A", "once -n shop", "timeline once", "timeline once -A", "timeline pod/once -A", "timeline pod/once -n shop"} {
		assert.Equal(t, []string{"relates"}, names(as(append(strings.Fields(args), "-o", "name")...).out), args)
	}
	assert.Equal(t, []string{"relates"}, names(as("data", "-o", "name").out), "only related")
	assert.Equal(t, []string{"p-nons"}, names(as("pod/p-nons", "-o", "name").out))
	assert.Equal(t, []string{"p-nons"}, names(as("--for", "pod/p-nons", "-o", "name").out))
	assert.Equal(t, []string{"p-nons"}, names(as("timeline", "pod/p-nons", "-o", "name").out))
	assert.Equal(t, []string{"p-nons"}, names(as("timeline", "p-nons", "-o", "name").out))
	for _, user := range [][]string{nil, {"--token", token}} {
		assert.Equal(t, []string{"relates"}, names(as(append([]string{"once", "-n", "shop", "-o", "name"}, user...)...).out), user)
	}

	// Several objects are listed to choose from.
	for _, args := range []string{"web", "timeline web", "timeline pod/web -A"} {
		r := as(strings.Fields(args)...)
		assert.Equal(t, 1, r.code, args)
		assert.Contains(t, r.err, `2 objects: choose one, such as "pod/web -n `, args)
		rows := lines(r.out)
		require.Len(t, rows, 3, args)
		assert.Equal(t, []string{"OBJECT", "NAMESPACE", "SERIES", "ONGOING", "LAST"}, strings.Fields(rows[0]))
	}

	// An empty answer says where it looked, and where to look.
	for args, want := range map[string]string{
		"pod/once":                          `error: no events about pod/once in the namespace default, but in shop: pass "pod/once -n shop"`,
		"timeline pod/once":                 `error: no events about pod/once in the namespace default, but in shop: pass "pod/once -n shop"`,
		"-n no-such-namespace":              `error: the namespace "no-such-namespace" does not exist`,
		"-n empty":                          "No events found in the namespace empty. Pass -A for all namespaces, or -n for another one.",
		"top -n empty":                      "No events found in the namespace empty. Pass -A for all namespaces, or -n for another one.",
		"pod/none -n shop":                  "No events found about Pod/none in the namespace shop. Pass -A for all namespaces, or -n for another one.",
		"pod/once -n shop --state ongoing":  "No events found about Pod/once that match --state in the namespace shop. Pass -A for all namespaces, or -n for another one.",
		"-A --state finished --type Normal": "No events found that match --type, --state in any namespace.",

		"timeline pod/none -A":       "No events found about Pod/none in any namespace.",
		"nowhere":                    `error: "nowhere" is neither a kind (kubectl api-resources) nor the name of an object that Events mention`,
		"once nowhere":               `error: "once" is no kind (kubectl api-resources): pass KIND/NAME for each object, such as "pod/once -n shop"`,
		"once --for pod/web -n shop": `error: "once" is no kind (kubectl api-resources): pass KIND/NAME for each object, such as "pod/once -n shop"`,
		"timeline nowhere once":      `error: "nowhere" is neither a kind (kubectl api-resources) nor the name of an object that Events mention`,
		"ONCE":                       `such as "pod/once -n shop"`,
		"once -n other":              `such as "pod/once -n shop"`,
		"sidecar{nope}":              `such as "pod/sidecar -n shop"`,
		"pod/sidecar{app}":           `error: no events about pod/sidecar{app} in the namespace default, but in shop: pass "pod/sidecar{app} -n shop"`,
		"pod/sidecar{nope} -n shop":  `No events found about Pod/sidecar{nope} in the namespace shop. Pass "pod/sidecar -n shop" for all containers.`,
		"describe relates":           `error: no Event "relates" in the namespace default, but in shop: pass "relates -n shop"`,
	} {
		r := as(strings.Fields(args)...)
		assert.Contains(t, r.err, want, args)
		assert.Len(t, lines(r.err), 1, args)
		assert.Equal(t, !strings.HasPrefix(want, "No events"), r.code == 1, args)
	}

	// A container is a part of the object, and selects.
	list := show(t, server.Kubeconfig(), "-n", "shop", "--reason", "BackOff")
	assert.Contains(t, list, "Pod/sidecar{app}")
	assert.Contains(t, list, "Pod/sidecar{istio-proxy}")
	for _, args := range []string{"Pod/sidecar{app} -n shop", "sidecar{app}"} {
		assert.Equal(t, []string{"app"}, names(as(append(strings.Fields(args), "-o", "name")...).out), args)
	}
	assert.Len(t, names(as("pod/sidecar", "-n", "shop", "-o", "name").out), 2)
	for _, args := range []string{"-A --controller kubelet --instance worker-3", "-n shop --node worker-3", "-A --instance worker-3,worker-9"} {
		assert.Equal(t, []string{"app", "proxy"}, names(as(append(strings.Fields(args), "-o", "name", "--sort-by", "name")...).out), args)
	}
	for _, args := range [][]string{{"-n", "shop", "-o", "wide"}, {"describe", "app", "-n", "shop"}} {
		assert.Contains(t, show(t, server.Kubeconfig(), args...), "worker-3")
	}
	assert.Contains(t, show(t, server.Kubeconfig(), "timeline", "sidecar"), "Pod/sidecar{istio-proxy}")
	assert.Contains(t, show(t, server.Kubeconfig(), "timeline", "sidecar", "-o", "html"), "Pod/sidecar{istio-proxy}")
	assert.Contains(t, show(t, server.Kubeconfig(), "top", "nodes", "-A", "--limit", "0"), "worker-3")
	r := as("top", "objects", "-A", "--limit", "1")
	assert.Contains(t, r.err, "more (--limit 0 shows all)")
}

// TestDirectHitsFirst holds back the answer to the search for related objects.
func TestDirectHitsFirst(t *testing.T) {
	pod := objectIn("shop", "Pod", "web-0")
	about := newEvent("shop", "about", pod)
	relates := newEvent("shop", "relates", objectIn("shop", "Backup", "nightly"))
	relates.Related, relates.Series = &pod, &eventsv1.EventSeries{Count: 9, LastObservedTime: metav1.NowMicro()}
	release := make(chan struct{})
	kubeconfig := serve(t, func(r *http.Request) []eventsv1.Event {
		if strings.Contains(r.URL.Path, "/namespaces/") { // requests for the kind, and for the object
			return []eventsv1.Event{*about}
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return []eventsv1.Event{*about, *relates}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	assert.Equal(t, []string{"about"}, names(show(t, kubeconfig, "po/web-0", "-n", "shop", "-o", "name")), "without --related, it lists no other namespace")
	cmd := command(ctx, t, kubeconfig, "po/web-0", "-n", "shop", "--chunk-size", "0", "--related")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	rows := bufio.NewScanner(out)
	for _, want := range []string{"STATE", "note of about"} {
		require.True(t, rows.Scan())
		assert.Contains(t, rows.Text(), want)
	}
	close(release)
	require.True(t, rows.Scan())
	assert.Contains(t, rows.Text(), "note of relates")
	assert.False(t, rows.Scan(), rows.Text())
	require.NoError(t, cmd.Wait())
}

// podOf creates a Pod with an owner and a volume.
func podOf(t *testing.T, clients kubernetes.Interface, namespace, name string, owner *metav1.OwnerReference, claim, node string) types.UID {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app", Image: "example.com/app"}}},
	}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	if claim != "" {
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	}
	created, err := clients.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	return created.UID
}

// deploymentWeb creates a Deployment web, which can have an owner, and its ReplicaSet. owner is the
// reference of its Pods to that.
func deploymentWeb(t *testing.T, clients kubernetes.Interface, namespace string, of ...metav1.OwnerReference) (deployment *appsv1.Deployment, owner *metav1.OwnerReference) {
	labels := map[string]string{"app": "web"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app"}}}}
	deployment, err := clients.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", OwnerReferences: of}, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	set, err := clients.AppsV1().ReplicaSets(namespace).Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web-6d4cf9b7c", OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: deployment.UID, Controller: ptr.To(true)}}},
		Spec:       appsv1.ReplicaSetSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return deployment, &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: ptr.To(true)}
}

// TestGroupByOwner has a Deployment of 100 Pods of which 40 crash, some of them deleted, also with their
// ReplicaSet, and a Pod of the same name pattern that belongs to another owner.
func TestGroupByOwner(t *testing.T) {
	namespace := apiserver.Namespace(t)
	clients, kubeconfig := apiserver.Clientset(t), apiserver.Kubeconfig(t)
	_, owner := deploymentWeb(t, clients, namespace)
	var legacy []*corev1.Event
	occurrences := 0
	for i := range 100 {
		name := fmt.Sprintf("web-6d4cf9b7c-9tq%c%c", "bcdfghjklm"[i%10], "bcdfghjklm"[i/10])
		if i < 3 {
			name = strings.Replace(name, "6d4cf9b7c", "5b86d", 1) // an earlier ReplicaSet
		}
		pod := objectIn(namespace, "Pod", name)
		pod.UID = "uid-of-a-deleted-pod"
		if i >= 8 {
			pod.UID = podOf(t, clients, namespace, name, owner, "", "")
		}
		if i < 40 {
			pod.FieldPath = "spec.containers{app}"
			occurrences += 2 + i
			legacy = append(legacy, legacyEvent(name+".17d3", pod, fmt.Sprintf("worker-%d", i%4), "BackOff", int32(2+i), 12*time.Minute))
		}
	}
	job := objectIn(namespace, "Pod", "web-6d4cf9b7c-zzzzz")
	job.UID = podOf(t, clients, namespace, job.Name, &metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "web", UID: "uid-of-the-job", Controller: ptr.To(true)}, "", "")
	legacy = append(legacy, legacyEvent("job", job, "worker-0", "BackOff", 7, 12*time.Minute))
	create(t, clients, nil, legacy)

	list := lines(show(t, kubeconfig, "-n", namespace, "--group-by", "owner", "--reason", "BackOff"))
	require.Len(t, list, 3)
	var crashing string
	for _, line := range list {
		if strings.Contains(line, "40 Pods of Deployment/web ") {
			crashing = line
		}
	}
	cells := strings.Fields(crashing)
	require.NotEmpty(t, cells, list)
	assert.Equal(t, []string{"Ongoing", "12m", fmt.Sprint(occurrences) + "+"}, []string{cells[0], cells[2], cells[3]})
	assert.Equal(t, "40/40", cells[5])
	assert.Contains(t, strings.Join(list, "\n"), "Pod/web-6d4cf9b7c-zzzzz of Job/web")
	assert.Len(t, lines(show(t, kubeconfig, "-n", namespace, "--group-by", "node")), 1+4)
	var groups struct {
		Items []struct{ Title string }
	}
	require.NoError(t, json.Unmarshal([]byte(show(t, kubeconfig, "-n", namespace, "--group-by", "reason", "-o", "json")), &groups))
	assert.Equal(t, "BackOff × 41 Pods", groups.Items[0].Title)

	// More than 30 series are grouped. A timeline has those of all Pods.
	timeline := show(t, kubeconfig, "timeline", "deployment/web", "-n", namespace)
	assert.Equal(t, "Dependents: 32 of 92 Pods with ongoing Warnings (BackOff), 8 deleted Pods with ongoing Warnings (BackOff)", lines(timeline)[1])
	assert.Contains(t, timeline, "40 series in 1 group")
	page := show(t, kubeconfig, "timeline", "deployment/web", "-n", namespace, "-o", "html", "--group-by", "owner")
	assert.Contains(t, page, "40 Pods of Deployment/web")
	assert.Equal(t, 1, strings.Count(page, "<details>"))
	for _, object := range []string{"deployment/web", "rs/web-6d4cf9b7c"} {
		all := names(show(t, kubeconfig, "timeline", object, "-n", namespace, "-o", "name"))
		assert.Len(t, all, map[string]int{"deployment/web": 40, "rs/web-6d4cf9b7c": 37}[object], object)
		assert.NotContains(t, all, "job")
	}
	assert.Equal(t, []string{"job"}, names(show(t, kubeconfig, "timeline", "pod/"+job.Name, "-n", namespace, "-o", "name")))
}

// TestBrokenDeployment requires what somebody on call needs in the first two lines: 3 of 8 Pods crash, and one has been
// evicted and deleted.
func TestBrokenDeployment(t *testing.T) {
	namespace := apiserver.Namespace(t)
	clients, kubeconfig := apiserver.Clientset(t), apiserver.Kubeconfig(t)
	// The Deployment of an operator is not the topmost owner of its Pods.
	deployment, owner := deploymentWeb(t, clients, namespace, metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Site", Name: "site", UID: "u", Controller: ptr.To(true)})
	deleted := objectIn(namespace, "Pod", "web-6d4cf9b7c-zzzzz")
	deleted.UID = "uid-of-a-deleted-pod"
	legacy := []*corev1.Event{legacyEvent("evicted", deleted, "worker-1", "Evicted", 1, 0)}
	for i := range 8 {
		pod := objectIn(namespace, "Pod", "web-6d4cf9b7c-9tq8"+"bcdfghjk"[i:i+1])
		pod.UID = podOf(t, clients, namespace, pod.Name, owner, "", "")
		started := legacyEvent(pod.Name+".started", pod, "worker-1", "Started", 1, 20*time.Minute)
		started.LastTimestamp = started.FirstTimestamp // before the loop
		started.Type = "Normal"
		legacy = append(legacy, started)
		if i < 3 {
			legacy = append(legacy, legacyEvent(pod.Name+".backoff", pod, "worker-1", "BackOff", 40, 12*time.Minute))
		}
	}
	regarding := objectIn(namespace, "Deployment", "web")
	regarding.UID = deployment.UID
	scaled := newEvent(namespace, "scaled", regarding)
	create(t, clients, events(scaled), legacy)

	out := lines(show(t, kubeconfig, "timeline", "deploy/web", "-n", namespace))
	assert.Equal(t, "Deployment/web in "+namespace, out[0])
	assert.Equal(t, "Dependents: 3 of 8 Pods with ongoing Warnings (BackOff), 1 deleted Pod with past Warnings (Evicted)", out[1])
	assert.Contains(t, strings.Join(out, "\n"), "13 series, 3 ongoing")
	assert.Contains(t, strings.Join(out, "\n"), "kubectl series timeline pod/web-6d4cf9b7c-9tq8b -n "+namespace+" ")
	assert.Equal(t, out[1], lines(show(t, kubeconfig, "timeline", "deploy/web", "-n", namespace, "--type", "Normal"))[1], "whatever is selected")
	for _, format := range []string{"html", "svg"} {
		assert.Contains(t, show(t, kubeconfig, "timeline", "deploy/web", "-n", namespace, "-o", format), "3 of 8 Pods with ongoing Warnings")
	}

	// Without a cluster, the names tell.
	list, err := clients.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("EventList"))
	data, err := json.Marshal(list)
	require.NoError(t, err)
	directory := filepath.Join(t.TempDir(), "must-gather", "namespaces", namespace, "core")
	require.NoError(t, os.MkdirAll(directory, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(directory, "events.yaml"), data, 0o600)) // JSON is YAML
	require.NoError(t, os.WriteFile(filepath.Join(directory, "pods.yaml"), []byte("- not\n- read"), 0o600))
	out = lines(show(t, "no such file", "timeline", "deploy/web", "-f", filepath.Join(directory, "..", "..", "..")))
	assert.Equal(t, "Dependents: 3 Pods with ongoing Warnings (BackOff), 1 Pod with past Warnings (Evicted)", out[1])
}

// TestFilesOfEvents reads Events without a cluster, in each command.
func TestFilesOfEvents(t *testing.T) {
	now := time.Now()
	ours, legacy := incident(now)
	directory := t.TempDir()
	write := func(name string, object any) string {
		data, err := json.Marshal(object)
		require.NoError(t, err)
		file := filepath.Join(directory, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, data, 0o600))
		return file
	}
	list := &eventsv1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "EventList"}}
	for _, e := range ours {
		list.Items = append(list.Items, *e)
	}
	core := &corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}}
	for _, e := range legacy {
		core.Items = append(core.Items, *e)
	}
	a, b := write("shop/events.json", list), write("namespaces/shop/core/events.yaml", core)
	offline := func(args ...string) string { return show(t, "no such file", args...) }
	all := offline("-f", a, "-f", b)
	assert.Equal(t, all, offline("-f", directory))
	assert.Len(t, lines(all), 1+len(ours)+len(legacy))
	assert.Contains(t, all, "NAMESPACE")
	assert.NotContains(t, offline("-f", a, "-n", "shop"), "NAMESPACE")
	for args, want := range map[string]string{
		"timeline checkout-0":                       "3 series, 1 ongoing",
		"timeline pod/checkout-0 -n shop --follow":  "Backup/nightly (SnapshotFailed)",
		"timeline po/checkout-0 -n shop -o html":    "<!DOCTYPE html>",
		"pvc/orders-data --related":                 "SnapshotFailed",
		"no/worker-3":                               "NodeNotReady",
		"--group-by owner":                          "Deployment/web",
		"top controllers":                           "example.com/backup-controller",
		"describe nightly.ced76d4631424fb8":         "Backup/nightly in shop",
		"--note QUOTA -o name":                      "nightly.ced76d4631424fb8",
		"--field-selector regarding.kind=Node":      "worker-3",
		"timeline checkout-0 --time local --follow": "worker-3",
	} {
		fields := append(strings.Fields(args), "-f", directory)
		if args == "timeline checkout-0" {
			fields = append(fields, "--related")
		}
		assert.Contains(t, offline(fields...), want, args)
	}

	cmd := command(t.Context(), t, "no such file", "-f", "-", "--at", now.Format(time.RFC3339Nano))
	var err error
	cmd.Stdin, err = os.Open(a)
	require.NoError(t, err)
	out, err := cmd.Output()
	require.NoError(t, err)
	assert.Len(t, lines(string(out)), 1+len(ours))

	for args, want := range map[string]string{
		"-f " + a + " -w":         "error: --watch: a file does not change",
		"--at 1h":                 "error: --at is for --filename",
		"--time zulu":             `error: --time "zulu": want one of relative, local, utc`,
		"-f " + a + " pod/none":   "No events found about Pod/none",
		"-f " + a + " describe x": `error: no Event "x"`,
	} {
		assert.Contains(t, run(t, "no such file", strings.Fields(args)...).err, want, args)
	}
}

// TestSpelling passes values in the wrong case.
func TestSpelling(t *testing.T) {
	namespace := apiserver.Namespace(t)
	create(t, apiserver.Clientset(t), nil, []*corev1.Event{legacyEvent("a", objectIn(namespace, "Pod", "web-0"), "worker-3", "BackOff", 9, time.Hour)})
	for args, want := range map[string]string{
		"--reason backoff":                 "Did you mean --reason BackOff?",
		"--reason backoff -o name":         "Did you mean --reason BackOff?",
		"top --reason BACKOFF":             "Did you mean --reason BackOff?",
		"--controller Kubelet":             "Did you mean --controller kubelet?",
		"--node Worker-3 --group-by owner": "Did you mean --node worker-3?",
	} {
		r := run(t, apiserver.Kubeconfig(t), append(strings.Fields(args), "-n", namespace)...)
		assert.Contains(t, r.err, want, args)
		assert.Len(t, lines(r.err), 1, args)
	}
	assert.NotContains(t, run(t, apiserver.Kubeconfig(t), "--reason", "other", "-n", namespace).err, "Did you mean")
}

// TestNextHop follows a Pod to its volume, to what fails there, and to its Node and its owner.
func TestNextHop(t *testing.T) {
	namespace, kubeconfig := apiserver.Namespace(t), apiserver.Kubeconfig(t)
	clients := apiserver.Clientset(t)
	node := "node-of-" + namespace
	pod := objectIn(namespace, "Pod", "checkout-0")
	yes := true
	pod.UID = podOf(t, clients, namespace, pod.Name, &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "checkout", UID: "u", Controller: &yes}, "orders-data", node)
	claim := objectIn(namespace, "PersistentVolumeClaim", "orders-data")
	failed := newEvent(namespace, "failed", objectIn(namespace, "Backup", "nightly"))
	failed.Related = &claim
	create(t, clients, events(
		newEvent(namespace, "crash", pod), failed, newEvent(namespace, "scaled", objectIn(namespace, "StatefulSet", "checkout")),
		newEvent("default", "pressure."+namespace, objectIn("", "Node", node)), newEvent(namespace, "unrelated", objectIn(namespace, "Pod", "web-0")),
	), nil)

	timeline := show(t, kubeconfig, "timeline", "checkout-0", "-n", namespace)
	for _, command := range []string{
		"persistentvolumeclaim/orders-data -n " + namespace, "node/" + node, "statefulset/checkout -n " + namespace, "pod/checkout-0 -n " + namespace + " --follow",
	} {
		assert.Contains(t, timeline, "  kubectl series timeline "+command+" ")
	}
	assert.Contains(t, show(t, kubeconfig, "describe", "failed", "-n", namespace), "kubectl series timeline backup/nightly -n "+namespace+" --follow")
	assert.ElementsMatch(t, []string{"crash", "failed", "scaled", "pressure." + namespace}, names(show(t, kubeconfig, "timeline", "checkout-0", "-n", namespace, "--follow", "-o", "name")))
	followed := show(t, kubeconfig, "timeline", "checkout-0", "-n", namespace, "--follow")
	assert.NotContains(t, followed, "Next:")
	assert.Contains(t, followed, "Pod/checkout-0 → Node/"+node+" (node)")
}
