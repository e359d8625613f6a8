package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
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
	schedulerProgram = program{
		Module: kubernetesModule, Version: kubernetesVersion, Staging: kubernetesStaging,
		Users: []controlplane.User{{Name: "kube-scheduler", Token: "kube-scheduler-token", Groups: []string{"system:masters"}}},
	}
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

// scheduler runs kube-scheduler with each case and each recorder, one after the other.
func scheduler(ctx context.Context, cfg config, r *schedulerResults) error {
	m := &mover{program: schedulerProgram, root: cfg.root, work: filepath.Join(cfg.work, "scheduler")}
	apiserver, err := controlplane.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if err := m.copyKubernetes(ctx, apiserver, "scheduler"); err != nil {
		return err
	}
	binary, err := m.compileTrial(ctx, "kube-scheduler", "./cmd/scheduler")
	if err != nil {
		return err
	}
	r.Cores, r.Version = runtime.NumCPU(), m.Version
	for _, study := range schedulerCases {
		if !strings.Contains(study.Name, cfg.studyCase) {
			continue
		}
		log.Printf("kube-scheduler: %s", study.Name)
		err := m.trySchedule(ctx, cfg, binary, apiserver, study, func(run schedulerRun) error {
			r.replace(run)
			return writeResults(cfg.resultsOf("scheduler"), r)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", study.Name, err)
		}
	}
	return nil
}

// trySchedule runs the scheduler with a case and the selected recorders.
func (m *mover) trySchedule(ctx context.Context, cfg config, binary, apiserver string, study schedulerCase, done func(schedulerRun) error) error {
	m.duration = study.Duration
	var (
		url     string
		started float64 // seconds of CPU that the start has taken
		batches []batch
	)
	return m.tryEach(ctx, cfg, trial{
		binary: binary, user: m.Users[0], groups: []string{stuck, fitting}, scale: 1,
		// The second plugin taints new nodes until a controller, which does not run, finds
		// them ready.
		serverArgs: []string{"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"},
		prepare:    func(ctx context.Context, c *cluster) error { return c.fill(ctx, study.Pods) },
		args: func(ctx context.Context) ([]string, error) {
			port, err := controlplane.FreePort(ctx)
			url = "https://127.0.0.1:" + strconv.Itoa(port)
			return []string{
				// With leader election, the scheduler exits without shutting down its recorder.
				"--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port),
				"--authorization-always-allow-paths=/readyz",
			}, err
		},
		begin: func(ctx context.Context, c *cluster) (err error) {
			if err = c.waitScheduler(ctx, url); err == nil {
				started, err = c.programCPU()
			}
			return err
		},
		acts: func(c *cluster) []act {
			return []act{
				{do: func(ctx context.Context) error { return c.changeNodes(ctx, study.SameMessage) }},
				{do: func(ctx context.Context) (err error) {
					batches, err = c.bindAll(ctx)
					return err
				}},
			}
		},
	}, apiserver, schedulerRecorders, func(run *recorderRun) error {
		none, others := run.Groups[0], run.Groups[1]
		requests := maps.Clone(none.Requests)
		if run.Lists > 0 {
			requests["list"] += run.Lists
		}
		return done(schedulerRun{
			Case: study.Name, Recorder: run.Recorder,
			Occurrences: none.Emitted, Requests: requests, Running: eventTally{Count: none.RecordedBefore},
			Stopped: eventTally{none.Events, none.Recorded}, Batches: batches,
			OtherOccurrences: others.Emitted, OtherEvents: others.Events, CPU: run.CPU - started, Exit: run.Exit,
		})
	})
}

// waitScheduler waits until the scheduler has read all objects.
func (c *cluster) waitScheduler(ctx context.Context, url string) error {
	// The scheduler makes a certificate when it starts.
	client, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return c.eventually(ctx, "ready kube-scheduler", func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

// programCPU returns the CPU time of the program so far, in seconds.
func (c *cluster) programCPU() (float64, error) {
	process, err := procfs.NewProc(c.program.Process.Pid)
	if err != nil {
		return 0, err
	}
	stat, err := process.Stat()
	return stat.CPUTime(), err
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
