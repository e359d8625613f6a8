package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/internal/controlplane"
)

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

// cluster is an API server with a version of a program.
type cluster struct {
	dir      string
	binary   string                                                 // of the program
	file     func(ctx context.Context, name string) (string, error) // reads a file of the program
	duration time.Duration                                          // of the story
	server   *controlplane.Server
	config   *rest.Config // of the administrator
	clients  kubernetes.Interface
	program  *exec.Cmd // nil before start
	exited   chan error
	before   []eventsv1.Event // just before the stop
	listed   time.Time        // when they were
}

// startCluster starts the API server. The caller must stop it.
func (m *mover) startCluster(ctx context.Context, apiserver, tag, dir string, serverArgs ...string) (_ *cluster, err error) {
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o644); err != nil {
		return nil, err
	}
	server, err := controlplane.Start(ctx, controlplane.Options{
		Binary: apiserver, DataDir: filepath.Join(dir, "data"), Users: m.Users,
		ExtraArgs: append([]string{"--", "--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(dir, "audit.log")}, serverArgs...),
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
	return &cluster{
		dir: dir, binary: m.binary(tag), duration: m.duration, server: server, config: config, clients: clients, exited: make(chan error, 1),
		file: func(ctx context.Context, name string) (string, error) { return m.git(ctx, "show", tag+":"+name) },
	}, nil
}

// start starts the program. Only stop ends the process, not a context.
func (c *cluster) start(cmd *exec.Cmd) error {
	output, err := os.Create(filepath.Join(c.dir, "program.log"))
	if err != nil {
		return err
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	if err := cmd.Start(); err != nil {
		return err
	}
	c.program = cmd
	go func() { c.exited <- cmd.Wait() }()
	return nil
}

// kubeconfig writes a kubeconfig for the program, which has the token, and returns its path.
func (c *cluster) kubeconfig(token string) (path string, err error) {
	config, err := clientcmd.LoadFromFile(c.server.Kubeconfig())
	if err != nil {
		return "", err
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{config.Contexts[config.CurrentContext].AuthInfo: {Token: token}}
	path = filepath.Join(c.dir, "program.kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

// running returns an error if the program has exited.
func (c *cluster) running() error {
	select {
	case err := <-c.exited:
		c.exited <- err
		return fmt.Errorf("%s exited: %w", c.binary, cmp.Or(err, errors.New("exit status 0")))
	default:
		return nil
	}
}

// exit is the end of the program.
type exit struct {
	state    *os.ProcessState
	duration time.Duration
}

// stop lists the Events, sends SIGTERM to the program, and waits for its exit.
func (c *cluster) stop(ctx context.Context) (exit, error) {
	if c.program == nil {
		return exit{}, nil
	}
	list, err := c.clients.EventsV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err == nil {
		c.before, c.listed = list.Items, time.Now()
	}
	began := time.Now()
	if err := c.program.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return exit{}, err
	}
	select {
	case err := <-c.exited:
		log.Printf("%s: exit: %v", c.dir, err) // a part of the result
	case <-time.After(time.Minute):
		return exit{}, errors.Join(fmt.Errorf("%s is still running a minute after SIGTERM", c.binary), c.program.Process.Kill())
	}
	return exit{c.program.ProcessState, time.Since(began)}, err
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
	// The API server has set others: PodScheduled.
	others := slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	pod.Status.Conditions = append(others, corev1.PodCondition{Type: corev1.PodReady, Status: ready, LastTransitionTime: now})
	_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// createNamespace creates a namespace with the service account of its Pods.
func (c *cluster) createNamespace(ctx context.Context, name string) error {
	_, err := c.clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = c.clients.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	return err
}

// serviceAccount creates a service account, gives it a ClusterRole, and returns its token.
func (c *cluster) serviceAccount(ctx context.Context, namespace, name, role string) (token string, err error) {
	accounts := c.clients.CoreV1().ServiceAccounts(namespace)
	if _, err = accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	_, err = c.clients.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	request, err := accounts.CreateToken(ctx, name, new(authenticationv1.TokenRequest), metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return request.Status.Token, nil
}

// createFiles creates the objects in YAML files of the program.
func (c *cluster) createFiles(ctx context.Context, names ...string) error {
	for _, name := range names {
		text, err := c.file(ctx, name)
		if err == nil {
			err = c.create(ctx, text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// create creates the objects of a YAML or JSON text. It waits until the API server serves
// their kind, which takes a while after the creation of the CustomResourceDefinition.
func (c *cluster) create(ctx context.Context, text string) error {
	objects := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var object unstructured.Unstructured
		if err := objects.Decode(&object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if len(object.Object) == 0 { // a comment
			continue
		}
		resource, err := c.resource(object.GroupVersionKind())
		if err != nil {
			return err
		}
		err = c.eventually(ctx, "create "+object.GetKind(), func(ctx context.Context) (bool, error) {
			_, err := resource.Namespace(object.GetNamespace()).Create(ctx, &object, metav1.CreateOptions{})
			return !apierrors.IsNotFound(err), ignoreStale(err)
		})
		if err != nil {
			return err
		}
	}
}

// resource returns a client for a kind of objects.
func (c *cluster) resource(kind schema.GroupVersionKind) (dynamic.NamespaceableResourceInterface, error) {
	clients, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return clients.Resource(resource), nil
}

// condition returns the status of a condition of an object, or nil.
func condition(object unstructured.Unstructured, name string) any {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == name {
			return c["status"]
		}
	}
	return nil
}

// eventually waits until a condition is true, for at most a minute.
func (c *cluster) eventually(ctx context.Context, what string, condition wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if c.program != nil {
			if err := c.running(); err != nil {
				return false, err
			}
		}
		return condition(ctx)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// ignoreStale ignores errors of a list that is older than the server's state. The next
// list is newer.
func ignoreStale(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
