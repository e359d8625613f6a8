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

// namespace is where the objects of the controllers would be. The objects
// themselves need not exist: an Event refers to them by name.
const namespace = "shop"

// firstRetry is how long each loop waits before it fails for the second time. It
// is long enough for the first Event to be written as the singleton that it is
// until then.
const firstRetry = 500 * time.Millisecond

// loop is a controller that emits events.
type loop struct {
	// controller is the name under which it reports.
	controller string
	// run emits until ctx ends, or until there is nothing more to say. Between
	// two occurrences of a series it waits for less than finishAfter.
	run func(ctx context.Context, recorder events.EventRecorder)
}

// controllers returns the loops of the demo.
func controllers() []loop {
	return []loop{
		{controller: "kubelet", run: crashLoop},
		{controller: "replicaset-controller", run: scaleUp},
		{controller: "default-scheduler", run: scheduleInVain},
		{controller: "node-controller", run: missHeartbeats},
		{controller: "example.com/backup-controller", run: reconcileInVain},
	}
}

// start runs loops until ctx ends. The channel is closed when all of them have
// ended.
func start(ctx context.Context, loops []loop, recorderOf func(controller string) events.EventRecorder) <-chan struct{} {
	var running sync.WaitGroup
	for _, l := range loops {
		running.Go(func() { l.run(ctx, recorderOf(l.controller)) })
	}
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	return done
}

// crashLoop is the kubelet with a container that crashes whenever it is started.
// The back-off that the note tells of is the real one; it passes 120 times as
// fast.
func crashLoop(ctx context.Context, recorder events.EventRecorder) {
	const most = 5 * time.Minute
	pod := newPod("checkout-0")
	for backOff := 10 * time.Second; ; backOff = min(2*backOff, most) {
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, "BackOff", "Restarting",
			"Back-off %v restarting failed container app in pod %s_%s", backOff, pod.Name, pod.Namespace)
		if !pause(ctx, max(backOff/120, firstRetry)) {
			return
		}
	}
}

// scaleUp is the ReplicaSet controller that creates Pods. Each is another
// related object, and so another Event, which stays a singleton.
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

// scheduleInVain is the scheduler with a Pod that fits nowhere.
func scheduleInVain(ctx context.Context, recorder events.EventRecorder) {
	pod := newPod("analytics-0")
	for wait := firstRetry; ; wait = min(2*wait, 2*time.Second) {
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling",
			"0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, 2 Insufficient memory.")
		if !pause(ctx, wait) {
			return
		}
	}
}

// missHeartbeats is the node controller with a Node of which nothing is heard. A
// Node has no namespace: its Event goes to kube-system.
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

// reconcileInVain is a controller with a bug that many have had: each failure is
// written into the status of the object, which changes it, which makes the
// controller reconcile it again at once. So every occurrence has another
// resourceVersion, up to 2,000 times a second.
func reconcileInVain(ctx context.Context, recorder events.EventRecorder) {
	backup := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Backup"},
		ObjectMeta: newMeta(namespace, "nightly"),
	}
	volume := &corev1.PersistentVolumeClaim{ObjectMeta: newMeta(namespace, "orders-data")}
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

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: newMeta(namespace, name)}
}

func newMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uuid.NewUUID(), ResourceVersion: "1000"}
}

// pause waits for d. It reports false if ctx ends before.
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
