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

// firstRetry is the least time until the second failure of each controller. It is long
// enough for the recorder to write the first one as a singleton.
const firstRetry = 500 * time.Millisecond

// controller is a controller that emits events.
type controller struct {
	// name is the reporting controller of its Events.
	name string
	// run emits events until ctx ends or the controller has no more work. pause waits
	// between two of them. It returns false if ctx ends first.
	run func(recorder events.EventRecorder, pause func(time.Duration) bool)
}

// controllers are the controllers of the demo.
var controllers = []controller{
	{name: "kubelet", run: crashLoop},
	{name: "replicaset-controller", run: scaleUp},
	{name: "default-scheduler", run: failScheduling},
	{name: "node-controller", run: missHeartbeats},
	{name: "example.com/backup-controller", run: hotLoop},
	{name: "example.com/volume-controller", run: suspendWrites},
}

// start runs the controllers until ctx ends, with time that passes speed times as fast. It
// returns a channel that closes when all of them have returned.
func start(ctx context.Context, speed time.Duration, recorderOf func(controller string) events.EventRecorder) <-chan struct{} {
	var running sync.WaitGroup
	for _, c := range controllers {
		running.Go(func() { c.run(recorderOf(c.name), pauses(ctx, speed)) })
	}
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	return done
}

// crashLoop is the kubelet with a container that crashes on each start.
func crashLoop(recorder events.EventRecorder, pause func(time.Duration) bool) {
	const maxBackOff = 5 * time.Minute
	pod := checkout
	for backOff := 10 * time.Second; ; backOff = min(2*backOff, maxBackOff) {
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, "BackOff", "Restarting",
			"Back-off %v restarting failed container app in pod %s_%s", backOff, pod.Name, pod.Namespace)
		if !pause(backOff) {
			return
		}
	}
}

// scaleUp is the ReplicaSet controller that creates Pods. Each Pod is a different
// related object, so there are four singletons.
func scaleUp(recorder events.EventRecorder, pause func(time.Duration) bool) {
	replicaSet := &appsv1.ReplicaSet{ObjectMeta: newMeta(namespace, "web-6d4cf")}
	for _, suffix := range []string{"4kzqh", "9tq8d", "m7vpx", "zl2wc"} {
		pod := newPod(replicaSet.Name + "-" + suffix)
		recorder.Eventf(replicaSet, pod, corev1.EventTypeNormal, "SuccessfulCreate", "Creating", "Created pod: %s", pod.Name)
		if !pause(30 * time.Second) {
			return
		}
	}
}

// failScheduling is the scheduler with a Pod that does not fit on any Node.
func failScheduling(recorder events.EventRecorder, pause func(time.Duration) bool) {
	pod := newPod("analytics-0")
	for wait := time.Minute; ; wait = min(2*wait, 4*time.Minute) {
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling",
			"0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, 2 Insufficient memory.")
		if !pause(wait) {
			return
		}
	}
}

// missHeartbeats is the node controller with an unreachable Node. A Node has no
// namespace, so its Event is in kube-system.
func missHeartbeats(recorder events.EventRecorder, pause func(time.Duration) bool) {
	node := &corev1.Node{ObjectMeta: newMeta("", "worker-3")}
	const interval = 2 * time.Minute
	for silence := 40 * time.Second; ; silence += interval {
		recorder.Eventf(node, nil, corev1.EventTypeWarning, "NodeNotReady", "MonitoringHealth",
			"Node %s is not ready: kubelet stopped posting node status %v ago", node.Name, silence)
		if !pause(interval) {
			return
		}
	}
}

// hotLoop is a controller with a common bug: it writes each failure to the object's
// status, and so triggers another reconciliation at once. Every occurrence has a new
// resourceVersion, up to 17 times per second.
func hotLoop(recorder events.EventRecorder, pause func(time.Duration) bool) {
	backup := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Backup"},
		ObjectMeta: newMeta(namespace, "nightly"),
	}
	for attempt := 1; ; attempt++ {
		backup.ResourceVersion = strconv.Itoa(1000 + attempt)
		recorder.Eventf(backup, volume, corev1.EventTypeWarning, "SnapshotFailed", "Snapshotting",
			"snapshot of %s failed: attempt %d: quota exceeded", volume.Name, attempt)
		wait := 60 * time.Millisecond
		if attempt == 1 {
			wait = time.Minute
		}
		if !pause(wait) {
			return
		}
	}
}

// suspendWrites is a controller that makes a volume read-only during a snapshot, which is why
// the container crashes. It emits one event, whose related object is the Pod.
func suspendWrites(recorder events.EventRecorder, _ func(time.Duration) bool) {
	recorder.Eventf(volume, checkout, corev1.EventTypeWarning, "WritesSuspended", "Suspending",
		"%s cannot write to %s until the snapshot is complete", checkout.Name, volume.Name)
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: newMeta(namespace, name)}
}

func newMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uuid.NewUUID(), ResourceVersion: "1000"}
}

// pauses returns a function that waits while time passes speed times as fast, but for
// firstRetry the first time. It returns false if ctx ends first.
func pauses(ctx context.Context, speed time.Duration) func(time.Duration) bool {
	least := firstRetry
	return func(d time.Duration) bool {
		timer := time.NewTimer(max(d/speed, least))
		defer timer.Stop()
		least = 0
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		}
	}
}
