package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// manager is the user of the kube-controller-manager. The name of the real one contains a
// colon, which the control plane does not accept.
const manager = "kube-controller-manager"

// auditPolicy logs what the comparison counts: requests for Events, and created Jobs.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources: [{group: "", resources: [events]}, {group: events.k8s.io, resources: [events]}]
- level: Metadata
  verbs: [create]
  resources: [{group: batch, resources: [jobs]}]
- level: None
`

// cluster is an API server with a kube-controller-manager. This program plays the
// scheduler and the kubelets.
type cluster struct {
	dir     string
	server  *controlplane.Server
	clients kubernetes.Interface
	manager *exec.Cmd
	exited  chan error

	mu    sync.Mutex
	alive []string // Nodes
	beat  time.Time

	before []eventsv1.Event // just before the stop
}

// startCluster starts the servers. The caller must stop both.
func startCluster(ctx context.Context, apiserver, program, dir string) (_ *cluster, err error) {
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o644); err != nil {
		return nil, err
	}
	const token = "kube-controller-manager-token"
	server, err := controlplane.Start(ctx, controlplane.Options{
		Binary: apiserver, DataDir: filepath.Join(dir, "data"),
		Users:     []controlplane.User{{Name: manager, Token: token}},
		ExtraArgs: []string{"--", "--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(dir, "audit.log")},
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, server.Stop())
		}
	}()
	config, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, server: server, clients: clients, exited: make(chan error, 1), alive: []string{"node-a", lostNode}}
	if err := c.grant(ctx); err != nil {
		return nil, err
	}
	if err := c.createNodes(ctx); err != nil {
		return nil, err
	}
	return c, c.startManager(ctx, program)
}

// grant gives the user of the kube-controller-manager the roles that Kubernetes binds to
// system:kube-controller-manager.
func (c *cluster) grant(ctx context.Context) error {
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: manager}}
	_, err := c.clients.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: manager}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:kube-controller-manager"},
	}, metav1.CreateOptions{})
	errs := []error{err}
	for _, role := range []string{"system::leader-locking-kube-controller-manager", "extension-apiserver-authentication-reader"} {
		_, err = c.clients.RbacV1().RoleBindings(metav1.NamespaceSystem).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: manager + "-"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		}, metav1.CreateOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// createNodes creates the Nodes, and their leases.
func (c *cluster) createNodes(ctx context.Context) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	for _, name := range c.alive {
		node, err := c.clients.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		node.Status = corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}}
		if _, err := c.clients.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
			return err
		}
		_, err = c.clients.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &name, LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(metav1.NowMicro()),
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	c.beat = time.Now()
	return nil
}

// lose makes a Node disappear: its kubelet stops.
func (c *cluster) lose(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	alive := c.alive[:0:0]
	for _, name := range c.alive {
		if name != node {
			alive = append(alive, name)
		}
	}
	c.alive = alive
}

// startManager starts the kube-controller-manager as kubeadm does: each controller has its
// own service account, with the roles that Kubernetes ships.
func (c *cluster) startManager(ctx context.Context, program string) error {
	config, err := clientcmd.LoadFromFile(c.server.Kubeconfig())
	if err != nil {
		return err
	}
	config.CurrentContext = manager
	kubeconfig := filepath.Join(c.dir, "manager.kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return err
	}
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	output, err := os.Create(filepath.Join(c.dir, "manager.log"))
	if err != nil {
		return err
	}
	defer output.Close()
	// Only stopManager ends the process, not a context. Most controllers log their events at
	// level 3.
	c.manager = exec.CommandContext(context.Background(), program, "--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig, "--use-service-account-credentials", "--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(port), "--cert-dir="+filepath.Join(c.dir, "certs"),
		"--flex-volume-plugin-dir="+filepath.Join(c.dir, "flexvolume"), "-v=3",
		// Without it, SIGTERM kills the process, as SIGKILL does.
		"--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=true")
	c.manager.Stdout, c.manager.Stderr = output, output
	c.manager.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := c.manager.Start(); err != nil {
		return err
	}
	go func() { c.exited <- c.manager.Wait() }()
	return nil
}

// freePort returns a port that was free a moment ago.
func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// exit is the end of the kube-controller-manager.
type exit struct {
	state    *os.ProcessState
	duration time.Duration
}

// stopManager lists the Events, sends SIGTERM, and waits for the exit.
func (c *cluster) stopManager(ctx context.Context) (exit, error) {
	list, err := c.clients.EventsV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err == nil {
		c.before = list.Items
	}
	began := time.Now()
	if err := c.manager.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return exit{}, err
	}
	select {
	case err := <-c.exited:
		log.Printf("%s: exit: %v", c.dir, err) // a part of the result
	case <-time.After(time.Minute):
		return exit{}, errors.Join(errors.New("kube-controller-manager is still running a minute after SIGTERM"), c.manager.Process.Kill())
	}
	return exit{c.manager.ProcessState, time.Since(began)}, err
}

// kubelet does what the scheduler and the kubelets have to do now.
func (c *cluster) kubelet(ctx context.Context) error {
	c.mu.Lock()
	alive := c.alive
	c.mu.Unlock()
	var errs []error
	if time.Since(c.beat) > 10*time.Second {
		c.beat = time.Now()
		for _, node := range alive {
			patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, c.beat.UTC().Format(metav1.RFC3339Micro))
			_, err := c.clients.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, node, "application/merge-patch+json", patch, metav1.PatchOptions{})
			errs = append(errs, err)
		}
	}
	pods, err := c.clients.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
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
			node := alive[0]
			for _, other := range alive {
				if load[other] < load[node] {
					node = other
				}
			}
			load[node]++
			err := c.clients.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
				Target:     corev1.ObjectReference{Kind: "Node", Name: node},
			}, metav1.CreateOptions{})
			errs = append(errs, ignoreStale(err))
			continue
		}
		for _, node := range alive {
			if pod.Spec.NodeName == node {
				errs = append(errs, ignoreStale(c.runPod(ctx, pod)))
			}
		}
	}
	return errors.Join(errs...)
}

// runPod reports the state of a Pod.
func (c *cluster) runPod(ctx context.Context, pod *corev1.Pod) error {
	pods := c.clients.CoreV1().Pods(pod.Namespace)
	if pod.DeletionTimestamp != nil {
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	}
	if pod.Status.Phase != corev1.PodPending {
		return nil
	}
	now := metav1.Now()
	container := corev1.ContainerStatus{Name: "app", Image: "example.com/app:1"}
	ready := corev1.ConditionFalse
	switch pod.Labels[outcome] {
	case fails:
		pod.Status.Phase = corev1.PodFailed
		container.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, StartedAt: now, FinishedAt: now}
	case succeeds:
		pod.Status.Phase = corev1.PodSucceeded
		container.State.Terminated = &corev1.ContainerStateTerminated{StartedAt: now, FinishedAt: now}
	default:
		pod.Status.Phase = corev1.PodRunning
		container.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
		container.Ready = true
		ready = corev1.ConditionTrue
	}
	pod.Status.StartTime = &now
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{container}
	for i := range pod.Status.Conditions { // of the API server: PodScheduled
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			pod.Status.Conditions = append(pod.Status.Conditions[:i], pod.Status.Conditions[i+1:]...)
			break
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: ready, LastTransitionTime: now})
	_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// ignoreStale ignores errors of a list that is older than the server's state. The next
// list is newer.
func ignoreStale(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
