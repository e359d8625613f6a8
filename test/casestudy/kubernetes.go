package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// manager is the user of the kube-controller-manager. The name of the real one contains a
// colon, which the control plane does not accept.
const manager = "kube-controller-manager"

const (
	// shop is the namespace of the story, and limited another one with a quota.
	shop, limited = "shop", "limited"
	// outcome is the label of Pods that tells the kubelet what to do with them.
	outcome                   = "outcome"
	fails, succeeds, runsLong = "fails", "succeeds", "runs"
	// lostNode disappears in the story.
	lostNode = "node-b"
)

// kubernetesCluster is a cluster with a kube-controller-manager. This program plays the
// scheduler and the kubelets.
type kubernetesCluster struct {
	*cluster

	mu    sync.Mutex
	alive []string // Nodes
	beat  time.Time
}

// tellKubernetes runs the story of kube-controller-manager.
func tellKubernetes(ctx context.Context, c *cluster) error {
	k := &kubernetesCluster{cluster: c, alive: []string{"node-a", lostNode}}
	if err := k.grant(ctx); err != nil {
		return err
	}
	if err := k.createNodes(ctx); err != nil {
		return err
	}
	if err := k.startManager(ctx); err != nil {
		return err
	}
	acts := []act{
		{0, func(ctx context.Context) error { return createWorkloads(ctx, c.clients) }},
		{4 * time.Minute, scale(c, limited, "limited", 10)},
		{8 * time.Minute, func(context.Context) error { k.lose(lostNode); return nil }},
		{12 * time.Minute, raiseQuota(c)},
		{16 * time.Minute, func(ctx context.Context) error {
			return c.clients.CoreV1().Nodes().Delete(ctx, lostNode, metav1.DeleteOptions{})
		}},
	}
	for minute := range int(c.duration / time.Minute) {
		replicas := 8
		if minute%2 == 1 {
			replicas = 3
		}
		acts = append(acts, act{time.Duration(minute)*time.Minute + 30*time.Second, scale(c, shop, "web", replicas)})
	}
	return c.play(ctx, acts, k.kubelet)
}

// grant gives the user of the kube-controller-manager the roles that Kubernetes binds to
// system:kube-controller-manager.
func (k *kubernetesCluster) grant(ctx context.Context) error {
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: manager}}
	_, err := k.clients.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: manager}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:kube-controller-manager"},
	}, metav1.CreateOptions{})
	errs := []error{err}
	for _, role := range []string{"system::leader-locking-kube-controller-manager", "extension-apiserver-authentication-reader"} {
		_, err = k.clients.RbacV1().RoleBindings(metav1.NamespaceSystem).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: manager + "-"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		}, metav1.CreateOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// createNodes creates the Nodes, and their leases.
func (k *kubernetesCluster) createNodes(ctx context.Context) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	for _, name := range k.alive {
		node, err := k.clients.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		node.Status = corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}}
		if _, err := k.clients.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
			return err
		}
		_, err = k.clients.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &name, LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(metav1.NowMicro()),
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	k.beat = time.Now()
	return nil
}

// lose makes a Node disappear: its kubelet stops.
func (k *kubernetesCluster) lose(node string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.alive = slices.DeleteFunc(slices.Clone(k.alive), func(name string) bool { return name == node })
}

// startManager starts the kube-controller-manager as kubeadm does: each controller has its
// own service account, with the roles that Kubernetes ships.
func (k *kubernetesCluster) startManager(ctx context.Context) error {
	config, err := clientcmd.LoadFromFile(k.server.Kubeconfig())
	if err != nil {
		return err
	}
	config.CurrentContext = manager
	kubeconfig := filepath.Join(k.dir, "manager.kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return err
	}
	port, err := controlplane.FreePort(ctx)
	if err != nil {
		return err
	}
	// Most controllers log their events at level 3.
	return k.start(exec.CommandContext(context.Background(), k.binary, "--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig, "--use-service-account-credentials", "--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(port), "--cert-dir="+filepath.Join(k.dir, "certs"),
		"--flex-volume-plugin-dir="+filepath.Join(k.dir, "flexvolume"), "-v=3",
		// Without it, SIGTERM kills the process, as SIGKILL does.
		"--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=true"))
}

// createWorkloads creates the objects of the story.
func createWorkloads(ctx context.Context, clients kubernetes.Interface) error {
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("5")}},
	}
	var errs []error
	for _, ns := range []string{shop, limited} {
		_, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
		errs = append(errs, err)
	}
	_, err := clients.CoreV1().ResourceQuotas(limited).Create(ctx, quota, metav1.CreateOptions{})
	errs = append(errs, err)
	for name, cronJob := range map[string]*batchv1.CronJob{
		"backup": newCronJob(fails, batchv1.AllowConcurrent),
		"report": newCronJob(succeeds, batchv1.AllowConcurrent),
		"stuck":  newCronJob(runsLong, batchv1.ForbidConcurrent),
	} {
		cronJob.Name = name
		_, err := clients.BatchV1().CronJobs(shop).Create(ctx, cronJob, metav1.CreateOptions{})
		errs = append(errs, err)
	}
	for name, ns := range map[string]string{"web": shop, "limited": limited} {
		_, err := clients.AppsV1().Deployments(ns).Create(ctx, newDeployment(name), metav1.CreateOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func newCronJob(podOutcome string, policy batchv1.ConcurrencyPolicy) *batchv1.CronJob {
	template := newPodTemplate(podOutcome, podOutcome)
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.CronJob{Spec: batchv1.CronJobSpec{
		Schedule:          "* * * * *",
		ConcurrencyPolicy: policy,
		JobTemplate:       batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{BackoffLimit: ptr.To[int32](1), Template: template}},
	}}
}

func newDeployment(name string) *appsv1.Deployment {
	template := newPodTemplate(name, runsLong)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template,
		},
	}
}

func newPodTemplate(app, podOutcome string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app, outcome: podOutcome}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}},
	}
}

func scale(c *cluster, namespace, deployment string, replicas int) func(context.Context) error {
	return func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		_, err := c.clients.AppsV1().Deployments(namespace).Patch(ctx, deployment, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
}

func raiseQuota(c *cluster) func(context.Context) error {
	return func(ctx context.Context) error {
		patch := []byte(`{"spec":{"hard":{"pods":"20"}}}`)
		_, err := c.clients.CoreV1().ResourceQuotas(limited).Patch(ctx, "pods", types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
}

// kubelet does what the scheduler and the kubelets have to do now.
func (k *kubernetesCluster) kubelet(ctx context.Context) error {
	k.mu.Lock()
	alive := k.alive
	k.mu.Unlock()
	var errs []error
	if time.Since(k.beat) > 10*time.Second {
		k.beat = time.Now()
		for _, node := range alive {
			patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, k.beat.UTC().Format(metav1.RFC3339Micro))
			_, err := k.clients.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, node, "application/merge-patch+json", patch, metav1.PatchOptions{})
			errs = append(errs, err)
		}
	}
	pods, err := k.clients.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	load := map[string]int{} // Pods by Node
	for _, pod := range pods.Items {
		load[pod.Spec.NodeName]++
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil {
			node := slices.MinFunc(alive, func(a, b string) int { return load[a] - load[b] })
			load[node]++
			err := k.clients.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
				Target:     corev1.ObjectReference{Kind: "Node", Name: node},
			}, metav1.CreateOptions{})
			errs = append(errs, ignoreStale(err))
			continue
		}
		if slices.Contains(alive, pod.Spec.NodeName) {
			errs = append(errs, ignoreStale(k.runPod(ctx, pod)))
		}
	}
	return errors.Join(errs...)
}
