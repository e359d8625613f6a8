package bench

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodsPerNode is the number of Pods on a node.
const PodsPerNode = 30

// HotLoop is the name of the story with one loop, whatever the size of the cluster.
const HotLoop = "A hot loop"

var stories = []story{
	{name: HotLoop, tell: (*fleet).hotLoop, real: true},
	{name: "Agents start", tell: (*fleet).agents},
	{name: "Rollouts", tell: (*fleet).rollouts, real: true},
	{name: "Crash loops", tell: (*fleet).crashLoops, real: true},
	{name: "CronJobs", tell: (*fleet).cronJobs, real: true},
	{name: "Failing reconciliations", tell: (*fleet).failures, real: true},
	{name: "A zone fails", tell: (*fleet).zone},
	{name: "The control plane restarts", tell: (*fleet).crashLoops, down: func(at time.Duration) bool { return at >= 20*time.Minute && at < 22*time.Minute }},
	{name: "All kubelets restart", tell: (*fleet).kubelets},
}

const (
	container = "app"
	image     = "registry.example.com/checkout/service:v1.42.0"
)

func hostOf(node int) string { return fmt.Sprintf("node-%04d", node) }

func aboutNode(node int) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: hostOf(node), UID: "uid-of-node"}
}

// aboutReplicaSet returns a reference to the i-th ReplicaSet, which has no name of another
// object: client-go names Events after the object and the time.
func aboutReplicaSet(i, version int) *corev1.ObjectReference {
	return aboutPod("apps/v1", "ReplicaSet", 1<<22+i, version)
}

// aboutPod returns a reference to the i-th object of a kind, in one of 200 namespaces. version
// changes whenever something writes to the object.
func aboutPod(apiVersion, kind string, i, version int) *corev1.ObjectReference {
	n := podNames(i)
	return &corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind, Namespace: n.namespace, Name: n.name, UID: types.UID(n.uid),
		ResourceVersion: strconv.Itoa(100_000_000 + version),
	}
}

func (f *fleet) normal(component, host string, about *corev1.ObjectReference, reason, action, note string, args ...any) {
	f.emit(component, host, occurrence{about, corev1.EventTypeNormal, reason, action, note, args})
}

// inTurn emits events about an object, 100 milliseconds apart, because client-go's recorders
// name Events after their time.
func (f *fleet) inTurn(component, host string, about *corev1.ObjectReference, reasons []string, note string) {
	for i, reason := range reasons {
		f.once(time.Since(f.began)+time.Duration(i)*100*time.Millisecond, func() {
			f.normal(component, host, about, reason, "Starting", note)
		})
	}
}

func (f *fleet) warning(component, host string, about *corev1.ObjectReference, reason, action, note string, args ...any) {
	f.emit(component, host, occurrence{about, corev1.EventTypeWarning, reason, action, note, args})
}

// hotLoop reconciles one object every second, and fails. It writes to the status of the object
// each time.
func (f *fleet) hotLoop() {
	version := 0
	f.from(0, func() time.Duration {
		version++
		f.warning(controller, "", aboutPod("v1", "Pod", 1, version), reason, action, note, noteArgs...)
		return time.Second
	})
}

// agents starts two agents on each node within a minute. Each reconciles its Node every ten
// minutes, and one of a hundred fails every ten seconds.
func (f *fleet) agents() {
	for i := range 2 * f.Nodes {
		component, host, about := fmt.Sprintf("example.com/agent-%d", i%2), hostOf(i/2), aboutNode(i/2)
		f.from(f.within(time.Minute), func() time.Duration {
			f.normal(component, host, about, "Synced", "Reconcile", "Synced the routes of the node")
			return 10 * time.Minute
		})
		if i%100 == 0 {
			f.from(time.Minute+f.within(time.Minute), func() time.Duration {
				f.warning(component, host, about, "SyncFailed", "Reconcile", "Cannot sync the routes: timeout")
				return 10 * time.Second
			})
		}
	}
}

// startPod emits the events of a Pod that starts on a node.
func (f *fleet) startPod(at time.Duration, i, node int) {
	host := hostOf(node)
	f.once(at, func() {
		f.normal("default-scheduler", "", aboutPod("v1", "Pod", i, 0), "Scheduled", "Binding", "Successfully assigned %v to %v", podNames(i).name, host)
	})
	at += time.Second + f.within(time.Second)
	for step, what := range [][3]string{
		{"Pulling", "Pulling", "Pulling image \"" + image + "\""}, {"Pulled", "Pulling", "Successfully pulled image \"" + image + "\" in 1.42s"},
		{"Created", "Creating", "Container created"}, {"Started", "Starting", "Container started"},
	} {
		f.once(at+time.Duration(step)*700*time.Millisecond, func() {
			f.normal("kubelet", host, aboutContainer(i), what[0], what[1], what[2])
		})
	}
}

func aboutContainer(i int) *corev1.ObjectReference {
	about := aboutPod("v1", "Pod", i, 1)
	about.FieldPath = "spec.containers{" + container + "}"
	return about
}

// rollouts replaces a tenth of all Pods in about half an hour: Deployments of 50 Pods, each Pod in
// a step of its own, every two seconds.
func (f *fleet) rollouts() {
	const size = 50
	for d := range max(f.Nodes*PodsPerNode/10/size, 1) {
		begin := f.within(30 * time.Minute)
		for step := range size {
			i, at := d*size+step, begin+time.Duration(step)*2*time.Second
			f.once(at, func() {
				f.normal("deployment-controller", "", aboutPod("apps/v1", "Deployment", d, 2*step), "ScalingReplicaSet", "Scale", "Scaled up replica set from %d to %d", step, step+1)
				f.normal("replicaset-controller", "", aboutReplicaSet(2*d, step), "SuccessfulCreate", "CreatePod", "Created pod: %v", podNames(i).name)
			})
			f.startPod(at+100*time.Millisecond, i, f.random.IntN(f.Nodes))
			f.once(at+10300*time.Millisecond, func() { // not at the time of another step
				f.normal("deployment-controller", "", aboutPod("apps/v1", "Deployment", d, 2*step+1), "ScalingReplicaSet", "Scale", "Scaled down replica set from %d to %d", size-step, size-step-1)
				f.normal("replicaset-controller", "", aboutReplicaSet(2*d+1, step), "SuccessfulDelete", "DeletePod", "Deleted pod: %v", i)
			})
			host := hostOf(f.random.IntN(f.Nodes))
			f.once(at+11*time.Second, func() {
				f.normal("kubelet", host, aboutContainer(1<<20+i), "Killing", "Killing", "Stopping container %s", container)
			})
		}
	}
}

// crashLoops runs the hundredth of all Pods that crashes, as the kubelet restarts them: with a
// back-off from 10 seconds to 5 minutes, and BackOff about once per minute.
func (f *fleet) crashLoops() {
	for i := range max(f.Nodes*PodsPerNode/100, 1) {
		host, backOff, left, version := hostOf(i%f.Nodes), 10*time.Second, time.Duration(0), 0
		f.from(f.within(time.Minute), func() time.Duration {
			about := aboutContainer(i)
			about.ResourceVersion = strconv.Itoa(100_000_000 + version)
			if left <= 0 {
				f.inTurn("kubelet", host, about, []string{"Pulled", "Created", "Started"}, "Container is there")
				left, backOff = backOff, min(2*backOff, 5*time.Minute)
				version++ // the kubelet has written that the container runs, and then that it does not
				return 5 * time.Second
			}
			f.warning("kubelet", host, about, "BackOff", "Restarting", "Back-off restarting failed container %s in pod %s", container, podNames(i).name)
			wait := min(left, 40*time.Second+f.within(40*time.Second))
			left -= wait
			return wait
		})
	}
}

// cronJobs runs one CronJob for each 25 nodes every minute, at second 0.
func (f *fleet) cronJobs() {
	for i := range max(f.Nodes/25, 1) {
		minute := 0
		f.from(f.within(200*time.Millisecond), func() time.Duration {
			job, pod, at := 1<<20+minute*f.Nodes+i, 1<<24+minute*f.Nodes+i, time.Since(f.began)
			f.normal("cronjob-controller", "", aboutPod("batch/v1", "CronJob", i, 2*minute), "SuccessfulCreate", "CreateJob", "Created job %v", job)
			f.once(at+time.Second, func() {
				f.normal("job-controller", "", aboutPod("batch/v1", "Job", job, 0), "SuccessfulCreate", "CreatePod", "Created pod: %v", pod)
			})
			f.startPod(at+time.Second+f.within(time.Second), pod, f.random.IntN(f.Nodes))
			f.once(at+20*time.Second+f.within(10*time.Second), func() {
				f.normal("job-controller", "", aboutPod("batch/v1", "Job", job, 1), "Completed", "CompleteJob", "Job completed")
				f.normal("cronjob-controller", "", aboutPod("batch/v1", "CronJob", i, 2*minute+1), "SawCompletedJob", "SyncStatus", "Saw completed job: %v", job)
			})
			minute++
			return time.Minute
		})
	}
}

// failures has 200 controllers retry 50 objects each, or one in a small cluster, with a back-off like
// that of workqueue, from a
// minute in which something that all need breaks.
func (f *fleet) failures() {
	const controllers = 200
	for i := range max(50*controllers*f.Nodes/5000, controllers) {
		component, delay := fmt.Sprintf("example.com/controller-%03d", i%controllers), 5*time.Millisecond
		f.from(f.within(time.Minute), func() time.Duration {
			f.warning(component, "", aboutPod("example.com/v1", "Database", i, 0), "ReconcileFailed", "Reconcile", "Cannot connect: timeout")
			delay = min(2*delay, 1000*time.Second)
			return delay
		})
	}
}

// zone fails a third of all nodes. Their Pods are evicted after 5 to 15 minutes, and start on
// other nodes.
func (f *fleet) zone() {
	const reporter = "node-controller"
	for node := range max(f.Nodes/3, 1) {
		failed := time.Minute + f.within(40*time.Second)
		f.once(failed, func() {
			f.normal(reporter, "", aboutNode(node), "NodeNotReady", "UpdateStatus", "Node %s status is now: NodeNotReady", hostOf(node))
		})
		for p := range PodsPerNode {
			i := node*PodsPerNode + p
			f.once(failed+time.Duration(p)*10*time.Millisecond, func() {
				f.warning(reporter, "", aboutPod("v1", "Pod", i, 0), "NodeNotReady", "UpdateStatus", "Node is not ready")
			})
			evicted := failed + 5*time.Minute + f.within(10*time.Minute) // the controller evicts at a limited rate
			f.once(evicted, func() {
				f.normal("taint-eviction-controller", "", aboutPod("v1", "Pod", i, 0), "TaintManagerEviction", "Delete", "Marking for deletion Pod %s", podNames(i).name)
				f.normal("replicaset-controller", "", aboutReplicaSet(i/10, i), "SuccessfulCreate", "CreatePod", "Created pod: %v", 1<<24+i)
			})
			// The other nodes have no room at first.
			tries := 1 + f.random.IntN(5)
			at := evicted + time.Second
			for range tries {
				f.once(at, func() {
					f.warning("default-scheduler", "", aboutPod("v1", "Pod", 1<<24+i, 0), "FailedScheduling", "Scheduling", "0/%d nodes are available", f.Nodes)
				})
				at += 30*time.Second + f.within(30*time.Second)
			}
			f.startPod(at, 1<<24+i, f.Nodes/3+f.random.IntN(f.Nodes-f.Nodes/3))
		}
	}
}

// kubelets restarts each kubelet once in half an hour, while Pods crash.
func (f *fleet) kubelets() {
	f.crashLoops()
	for node := range f.Nodes {
		f.once(10*time.Minute+f.within(30*time.Minute), func() {
			host := hostOf(node)
			f.restart("kubelet", host)
			reasons := []string{"Starting", "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeAllocatableEnforced"}
			f.inTurn("kubelet", host, aboutNode(node), reasons, "Status of the node")
		})
	}
}
