package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/eventseries/eventseries/query"
)

const (
	// nodeCount is the number of nodes. The message of an event lists how many of them
	// do not fit for which reason.
	nodeCount = 10
	// changeInterval is the time between two changes of a node.
	changeInterval = 500 * time.Millisecond

	// The names of Pods begin with one of these, and the names of their Events as well.
	stuckPrefix = "stuck-"
	workPrefix  = "work-"

	poolLabel = "example.com/pool" // the stuck Pods select it
	batchOf   = "example.com/batch"
	stuckCPU  = 8
	smallCPU  = 4
	largeCPU  = 16

	// creators is how many Pods are created at the same time.
	creators = 4
)

// cluster is what the scheduler sees.
type cluster struct{ clients kubernetes.Interface }

// fill creates the nodes and the Pods that no node fits: those with the label are too
// small, and the others lack the label.
func (c cluster) fill(ctx context.Context, pods int) error {
	for i := range nodeCount {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
		node.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(largeCPU, resource.DecimalSI),
			corev1.ResourceMemory: resource.MustParse("64Gi"),
			corev1.ResourcePods:   resource.MustParse("5000"),
		}
		node.Status.Capacity = node.Status.Allocatable
		if _, err := c.clients.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("scheduler: create a node: %w", err)
		}
	}
	if err := c.changeNode(ctx, nodeCount-1, true, smallCPU); err != nil {
		return err
	}
	return c.createPods(ctx, pods, func(i int) *corev1.Pod {
		pod := newPod(fmt.Sprintf("%s%d", stuckPrefix, i))
		pod.Spec.NodeSelector = map[string]string{poolLabel: "batch"}
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(stuckCPU, resource.DecimalSI)}
		return pod
	})
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}}},
	}
}

func (c cluster) createPods(ctx context.Context, n int, pod func(i int) *corev1.Pod) error {
	errs := make([]error, n)
	workqueue.ParallelizeUntil(ctx, creators, n, func(i int) {
		_, errs[i] = c.clients.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod(i), metav1.CreateOptions{})
	})
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return fmt.Errorf("scheduler: create Pods: %w", err)
	}
	return nil
}

// change changes a node every changeInterval until ctx ends. After each change, a Pod may
// fit as far as the plugin knows that rejected it, so the scheduler tries all Pods again.
//
// By default, one node after the other gets the label and becomes too small, and later
// one after the other is as before, so that each change also changes the message. If
// sameMessage is set, nodes without the label grow.
func (c cluster) change(ctx context.Context, sameMessage bool) error {
	ticker := time.NewTicker(changeInterval)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		// The first node never has the label, and the last one always.
		const changing = nodeCount - 2
		node, labeled, cpu := 1+i%changing, i/changing%2 == 0, smallCPU
		if sameMessage {
			labeled = false
		}
		if !labeled {
			cpu = largeCPU + i
		}
		if err := c.changeNode(ctx, node, labeled, cpu); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (c cluster) changeNode(ctx context.Context, i int, labeled bool, cpu int) error {
	label := "null"
	if labeled {
		label = `"batch"`
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}},"status":{"allocatable":{"cpu":"%d"}}}`, poolLabel, label, cpu)
	_, err := c.clients.CoreV1().Nodes().Patch(ctx, nodeName(i), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("scheduler: change a node: %w", err)
	}
	return nil
}

// bind creates a batch of Pods that fit on each node, and waits until all are bound or ctx
// ends.
func (c cluster) bind(ctx context.Context, batch, pods int) (Batch, error) {
	label := fmt.Sprint(batch)
	bound := newBoundPods(pods)
	factory := informers.NewSharedInformerFactoryWithOptions(c.clients, 0, informers.WithTweakListOptions(func(opts *metav1.ListOptions) {
		opts.LabelSelector = batchOf + "=" + label
	}))
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    bound.see,
		UpdateFunc: func(_, pod any) { bound.see(pod) },
	}); err != nil {
		return Batch{}, fmt.Errorf("scheduler: watch Pods: %w", err)
	}
	watching, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.Start(watching.Done())
	factory.WaitForCacheSync(watching.Done())

	start := time.Now()
	err := c.createPods(ctx, pods, func(i int) *corev1.Pod {
		pod := newPod(fmt.Sprintf("%s%d-%d", workPrefix, batch, i))
		pod.Labels = map[string]string{batchOf: label}
		return pod
	})
	if err != nil && ctx.Err() == nil {
		return Batch{}, err
	}
	select {
	case <-bound.all:
	case <-ctx.Done():
	}
	n, last := bound.progress()
	return Batch{Pods: pods, Bound: n, Seconds: last.Sub(start).Seconds()}, nil
}

// boundPods counts Pods that are bound to a node.
type boundPods struct {
	want int
	all  chan struct{} // closed when that many are bound

	mu   sync.Mutex
	pods map[types.UID]bool
	last time.Time
}

func newBoundPods(want int) *boundPods {
	return &boundPods{want: want, all: make(chan struct{}), pods: make(map[types.UID]bool)}
}

// see handles a Pod that was created or updated.
func (b *boundPods) see(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pods[pod.UID] {
		return
	}
	b.pods[pod.UID] = true
	b.last = time.Now()
	if len(b.pods) == b.want {
		close(b.all)
	}
}

// progress returns how many Pods are bound, and when the last of them was.
func (b *boundPods) progress() (n int, last time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pods), b.last
}

// tallies returns what the Events of the stuck Pods say, and the number of those of the
// other Pods.
func (c cluster) tallies(ctx context.Context) (stuck Tally, others int, err error) {
	list, err := c.clients.EventsV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return stuck, 0, fmt.Errorf("scheduler: list Events: %w", err)
	}
	now := time.Now()
	for i := range list.Items {
		event := &list.Items[i]
		switch {
		case strings.HasPrefix(event.Regarding.Name, workPrefix):
			others++
		case !strings.HasPrefix(event.Regarding.Name, stuckPrefix): // by the API server
		default:
			stuck.Events++
			stuck.Count += int(query.FromEvent(event, now).Count)
		}
	}
	return stuck, others, nil
}
