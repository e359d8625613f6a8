package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/casestudy/recorders"
)

const (
	// nodeCount is the number of nodes. The message of an event lists how many of them
	// do not fit for which reason.
	nodeCount = 10
	// changeInterval is the time between two changes of a node.
	changeInterval = 500 * time.Millisecond

	// The names of Pods begin with one of these.
	stuck   = "stuck-" // no node fits
	fitting = "work-"

	poolLabel = "example.com/pool" // the stuck Pods select it
	batchOf   = "example.com/batch"
	stuckCPU  = 8
	smallCPU  = 4
	largeCPU  = 16

	// creators is how many Pods are created at the same time.
	creators = 4
	// A batch of Pods that fit begins after firstBatch, and another one every
	// batchInterval after it.
	firstBatch    = 10 * time.Second
	batchInterval = time.Minute
	batchPods     = 500
)

var (
	schedulerRecorders = []string{recorders.ToolsEvents, recorders.Eventseries}
	schedulerCases     = []schedulerCase{
		{Name: "30 Pods, 60 s", Pods: 30, Duration: time.Minute},
		{Name: "30 Pods, 10 min", Pods: 30, Duration: 10 * time.Minute},
		{Name: "1,000 Pods, 60 s", Pods: 1000, Duration: time.Minute},
		{Name: "1,000 Pods, 10 min", Pods: 1000, Duration: 10 * time.Minute},
		{Name: "30 Pods, 60 s, same message", Pods: 30, Duration: time.Minute, SameMessage: true},
		{Name: "1,000 Pods, 60 s, same message", Pods: 1000, Duration: time.Minute, SameMessage: true},
	}
)

// schedulerCase is what the scheduler has to do.
type schedulerCase struct {
	Name     string
	Pods     int // which no node fits
	Duration time.Duration
	// SameMessage changes the nodes in a way that does not change why a Pod does not fit.
	SameMessage bool
}

// runCases runs kube-scheduler with each of the selected cases and recorders, one after the
// other.
func runCases(ctx context.Context, cfg config, r *results) error {
	apiserver, err := controlplane.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	binary, err := builder{root: cfg.root, dir: filepath.Join(cfg.work(), "kubernetes")}.scheduler(ctx, apiserver)
	if err != nil {
		return err
	}
	r.Cores, r.Version = runtime.NumCPU(), kubernetesVersion
	for _, study := range schedulerCases {
		for _, recorder := range schedulerRecorders {
			if !strings.Contains(study.Name, cfg.studyCase) || !strings.Contains(recorder, cfg.recorder) {
				continue
			}
			log.Printf("kube-scheduler: %s: %s", study.Name, recorder)
			run, err := schedule(ctx, filepath.Join(cfg.work(), "run"), apiserver, binary, recorder, study)
			if err == nil {
				r.replace(run)
				err = r.write(cfg.results())
			}
			if err != nil {
				return fmt.Errorf("%s: %s: %w", study.Name, recorder, err)
			}
		}
	}
	return nil
}

// schedule runs the scheduler with a case and a recorder.
func schedule(ctx context.Context, dir, apiserver, binary, recorder string, study schedulerCase) (run schedulerRun, err error) {
	c, err := startCluster(ctx, apiserver, dir)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, c.server.Stop()) }()
	if err := c.fill(ctx, study.Pods); err != nil {
		return run, err
	}
	if err := c.startScheduler(ctx, binary, recorder); err != nil {
		return run, err
	}
	started, err := c.cpu()
	if err == nil {
		run.Batches, err = c.play(ctx, study)
	}
	before, listErr := c.events(ctx)
	exit, cpu, stopErr := c.stop()
	after, afterErr := c.events(ctx)
	if err := errors.Join(err, listErr, stopErr, afterErr); err != nil {
		return run, err
	}
	run.Case, run.Recorder, run.CPU, run.Exit = study.Name, recorder, cpu-started, exit
	counts, err := os.ReadFile(c.counts())
	if err != nil {
		return run, err
	}
	audit, err := os.ReadFile(c.auditLog())
	if err != nil {
		return run, err
	}
	return run, run.measure(counts, audit, before, after)
}

// play changes nodes and creates Pods that fit, until the end of the case.
func (c *cluster) play(ctx context.Context, study schedulerCase) (batches []batch, err error) {
	end, cancel := context.WithTimeout(ctx, study.Duration)
	defer cancel()
	acts, end := errgroup.WithContext(end)
	acts.Go(func() error { return c.changeNodes(end, study.SameMessage) })
	acts.Go(func() (err error) {
		batches, err = c.bindAll(end)
		return err
	})
	err = acts.Wait()
	return batches, errors.Join(err, c.running(), ctx.Err())
}

func (c *cluster) events(ctx context.Context) ([]eventsv1.Event, error) {
	list, err := c.clients.EventsV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// fill creates the nodes and the Pods that no node fits: those with the label are too
// small, and the others lack the label.
func (c *cluster) fill(ctx context.Context, pods int) error {
	for i := range nodeCount {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
		node.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(largeCPU, resource.DecimalSI),
			corev1.ResourceMemory: resource.MustParse("64Gi"),
			corev1.ResourcePods:   resource.MustParse("5000"),
		}
		node.Status.Capacity = node.Status.Allocatable
		if _, err := c.clients.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create a node: %w", err)
		}
	}
	if err := c.changeNode(ctx, nodeCount-1, true, smallCPU); err != nil {
		return err
	}
	return c.createPodsAtOnce(ctx, pods, func(i int) *corev1.Pod {
		pod := schedulerPod(fmt.Sprintf("%s%d", stuck, i))
		pod.Spec.NodeSelector = map[string]string{poolLabel: "batch"}
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(stuckCPU, resource.DecimalSI)}
		return pod
	})
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

func schedulerPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}}},
	}
}

// createPodsAtOnce creates n Pods, a few at the same time.
func (c *cluster) createPodsAtOnce(ctx context.Context, n int, pod func(i int) *corev1.Pod) error {
	errs := make([]error, n)
	workqueue.ParallelizeUntil(ctx, creators, n, func(i int) {
		_, errs[i] = c.clients.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod(i), metav1.CreateOptions{})
	})
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return fmt.Errorf("create Pods: %w", err)
	}
	return nil
}

// changeNodes changes a node every changeInterval until ctx ends. After each change, a Pod may
// fit as far as the plugin knows that rejected it, so the scheduler tries all Pods again.
//
// By default, one node after the other gets the label and becomes too small, and later
// one after the other is as before, so that each change also changes the message. If
// sameMessage is set, nodes without the label grow.
func (c *cluster) changeNodes(ctx context.Context, sameMessage bool) error {
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

func (c *cluster) changeNode(ctx context.Context, i int, labeled bool, cpu int) error {
	label := "null"
	if labeled {
		label = `"batch"`
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}},"status":{"allocatable":{"cpu":"%d"}}}`, poolLabel, label, cpu)
	_, err := c.clients.CoreV1().Nodes().Patch(ctx, nodeName(i), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("change a node: %w", err)
	}
	return nil
}

// bindAll creates batches of Pods until ctx ends.
func (c *cluster) bindAll(ctx context.Context) (all []batch, err error) {
	next := time.NewTimer(firstBatch)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return all, nil
		case <-next.C:
		}
		next.Reset(batchInterval)
		bound, err := c.bind(ctx, len(all), batchPods)
		if err != nil {
			return all, err
		}
		all = append(all, bound)
	}
}

// bind creates a batch of Pods that fit on each node, and waits until all are bound or ctx
// ends.
func (c *cluster) bind(ctx context.Context, number, pods int) (batch, error) {
	label := strconv.Itoa(number)
	watcher, err := c.clients.CoreV1().Pods(metav1.NamespaceDefault).Watch(ctx, metav1.ListOptions{LabelSelector: batchOf + "=" + label})
	if err != nil {
		return batch{}, fmt.Errorf("watch Pods: %w", err)
	}
	defer watcher.Stop()
	result := batch{Pods: pods}
	start := time.Now()
	var watching sync.WaitGroup
	watching.Go(func() {
		bound := make(map[types.UID]bool, pods)
		for event := range watcher.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || pod.Spec.NodeName == "" || bound[pod.UID] {
				continue
			}
			bound[pod.UID] = true
			result.Bound, result.Seconds = len(bound), time.Since(start).Seconds()
			if len(bound) == pods {
				return
			}
		}
	})
	err = c.createPodsAtOnce(ctx, pods, func(i int) *corev1.Pod {
		pod := schedulerPod(fmt.Sprintf("%s%d-%d", fitting, number, i))
		pod.Labels = map[string]string{batchOf: label}
		return pod
	})
	if err != nil && ctx.Err() == nil {
		watcher.Stop()
	} else {
		err = nil
	}
	watching.Wait()
	return result, err
}
