package main

import (
	"context"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/eventseries/eventseries/events"
)

// namespace is the namespace of the controllers' objects. The objects do not exist; an
// Event only references them.
const namespace = "shop"

// Objects of several controllers.
var (
	checkout = newPod("checkout-0")
	volume   = &corev1.PersistentVolumeClaim{ObjectMeta: newMeta(namespace, "orders-data")}
)

// firstRetry is the time until the second failure of each controller. It is long enough
// for the recorder to write the first one as a singleton.
const firstRetry = 500 * time.Millisecond

// controller is a controller that emits events.
type controller struct {
	// name is the reporting controller of its Events.
	name string
	// run emits events until ctx ends or the controller has no more work. It waits
	// less than finishAfter between two occurrences of a series.
	run func(ctx context.Context, recorder events.EventRecorder)
}

// controllers returns the controllers of the demo.
func controllers() []controller {
	return []controller{
		{name: "kubelet", run: crashLoop},
		{name: "replicaset-controller", run: scaleUp},
		{name: "default-scheduler", run: failScheduling},
		{name: "node-controller", run: missHeartbeats},
		{name: "example.com/backup-controller", run: hotLoop},
		{name: "example.com/volume-controller", run: suspendWrites},
	}
}

// start runs controllers until ctx ends. It returns a channel that closes when all of
// them have returned.
func start(ctx context.Context, controllers []controller, recorderOf func(controller string) events.EventRecorder) <-chan struct{} {
	var running sync.WaitGroup
	for _, c := range controllers {
		running.Go(func() { c.run(ctx, recorderOf(c.name)) })
	}
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	return done
}

// crashLoop is the kubelet with a container that crashes on each start. The note
// contains the real back-off, but time passes 120 times as fast.
func crashLoop(ctx context.Context, recorder events.EventRecorder) {
	const maxBackOff = 5 * time.Minute
	pod := checkout
	for backOff := 10 * time.Second; ; backOff = min(2*backOff, maxBackOff) {
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, "BackOff", "Restarting",
			"Back-off %v restarting failed container app in pod %s_%s", backOff, pod.Name, pod.Namespace)
		if !pause(ctx, max(backOff/120, firstRetry)) {
			return
		}
	}
}

// scaleUp is the ReplicaSet controller that creates Pods. Each Pod is a different
// related object, so there are four singletons.
func scaleUp(ctx context.Context, recorder events.EventRecorder) {
	replicaSet := &appsv1.ReplicaSet{ObjectMeta: newMeta(namespace, "web-6d4cf")}
	for _, suffix := range []string{"4kzqh", "9tq8d", "m7vpx", "zl2wc"} {
		pod := newPod(replicaSet.Name + "-" + suffix)
		recorder.Eventf(replicaSet, pod, corev1.EventTypeNormal, "SuccessfulCreate", "Creating", "Created pod: %s", pod.Name)
		if !pause(ctx, 300*time.Millisecond) {
			return
		}
	}
}

// failScheduling is the scheduler with a Pod that does not fit on any Node.
func failScheduling(ctx context.Context, recorder events.EventRecorder) {
	pod := newPod("analytics-0")
	for wait := firstRetry; ; wait = min(2*wait, 2*time.Second) {
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling",
			"0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, 2 Insufficient memory.")
		if !pause(ctx, wait) {
			return
		}
	}
}

// missHeartbeats is the node controller with an unreachable Node. A Node has no
// namespace, so its Event is in kube-system.
func missHeartbeats(ctx context.Context, recorder events.EventRecorder) {
	node := &corev1.Node{ObjectMeta: newMeta("", "worker-3")}
	const interval = time.Second
	for silence := 40 * time.Second; ; silence += interval {
		recorder.Eventf(node, nil, corev1.EventTypeWarning, "NodeNotReady", "MonitoringHealth",
			"Node %s is not ready: kubelet stopped posting node status %v ago", node.Name, silence)
		if !pause(ctx, interval) {
			return
		}
	}
}

// hotLoop is a controller with a common bug: it writes each failure to the object's
// status, and so triggers another reconciliation at once. Every occurrence has a new
// resourceVersion, up to 2,000 times per second.
func hotLoop(ctx context.Context, recorder events.EventRecorder) {
	backup := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Backup"},
		ObjectMeta: newMeta(namespace, "nightly"),
	}
	for attempt := 1; ; attempt++ {
		backup.ResourceVersion = strconv.Itoa(1000 + attempt)
		recorder.Eventf(backup, volume, corev1.EventTypeWarning, "SnapshotFailed", "Snapshotting",
			"snapshot of %s failed: attempt %d: quota exceeded", volume.Name, attempt)
		wait := 500 * time.Microsecond
		if attempt == 1 {
			wait = firstRetry
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// suspendWrites is a controller that makes a volume read-only during a snapshot, which is why
// the container crashes. It emits one event, whose related object is the Pod.
func suspendWrites(_ context.Context, recorder events.EventRecorder) {
	recorder.Eventf(volume, checkout, corev1.EventTypeWarning, "WritesSuspended", "Suspending",
		"%s cannot write to %s until the snapshot is complete", checkout.Name, volume.Name)
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: newMeta(namespace, name)}
}

func newMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uuid.NewUUID(), ResourceVersion: "1000"}
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
