package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/eventseries/eventseries/internal/workload"
)

// occurrence is an event that a component of a cluster emits.
type occurrence struct {
	about     *corev1.ObjectReference
	eventType string
	reason    string
	action    string // tools/record has none
	note      string
	noteArgs  []any
}

// reporter emits events of one component.
type reporter func(o occurrence)

func (r *ours) reporter(component, _ string) reporter {
	to := r.NewRecorder(scheme.Scheme, component)
	return func(o occurrence) { to.Eventf(o.about, nil, o.eventType, o.reason, o.action, o.note, o.noteArgs...) }
}

func (r *toolsEvents) reporter(component, _ string) reporter {
	to := r.NewRecorder(scheme.Scheme, component)
	return func(o occurrence) { to.Eventf(o.about, nil, o.eventType, o.reason, o.action, o.note, o.noteArgs...) }
}

func (r *toolsRecord) reporter(component, host string) reporter {
	to := r.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component, Host: host})
	return func(o occurrence) { to.Eventf(o.about, o.eventType, o.reason, o.note, o.noteArgs...) }
}

// cluster is a cluster in which components emit events. Its methods are safe for
// concurrent use.
type cluster struct {
	began time.Time
	// start starts a process with a recorder.
	start func(component, host string) reporter

	mu          sync.Mutex
	reporters   map[string]reporter // by component and host
	occurrences int
}

// emit emits an event of a component on a host, which may be empty. Events about the
// same object must differ in time, since client-go names Events by their time.
func (c *cluster) emit(component, host string, o occurrence) {
	c.mu.Lock()
	at := component + "-" + host
	if c.reporters[at] == nil {
		c.reporters[at] = c.start(component, host)
	}
	report := c.reporters[at]
	c.occurrences++
	c.mu.Unlock()
	report(o)
}

// until sleeps until the given time after the beginning.
func (c *cluster) until(d time.Duration) { time.Sleep(time.Until(c.began.Add(d))) }

// past reports whether the given time after the beginning has come.
func (c *cluster) past(d time.Duration) bool { return time.Since(c.began) >= d }

const (
	storyTime = time.Hour
	// afterStory is enough for all recorders to notice that series have ended, except for
	// slow loops.
	afterStory = 20 * time.Minute
	// storyNamespace is the namespace of all objects in stories.
	storyNamespace = "team-001-production"
	container      = "app"
	image          = "registry.example.com/checkout/service:v1.42.0"
)

// story is an hour in a cluster.
type story struct {
	name string
	size int // number of objects
	tell func(c *cluster, size int)
}

// stories are the stories in the order of the report.
var stories = []story{
	{"Hot loop", 100, func(c *cluster, n int) { hotLoop(c, n, false) }},
	{"Hot loop with updates", 10, func(c *cluster, n int) { hotLoop(c, n, true) }},
	{"CrashLoopBackOff", 1000, crashLoop},
	{"CronJobs", 10, cronJobs},
	{"Rollout", 1000, rollout},
	{"Flood", 5000, distinctEvents},
	{"Failing reconciliations", 100, func(c *cluster, n int) { slowLoop(c, n, "workqueue") }},
	{"Resync", 100, func(c *cluster, n int) { slowLoop(c, n, "10 minutes") }},
}

// refer returns a reference to the i-th object of a kind. version changes whenever
// something writes to the object.
func refer(apiVersion, kind string, i, version int) *corev1.ObjectReference {
	n := podNames(i)
	return &corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind, Namespace: storyNamespace, Name: n.name, UID: types.UID(n.uid),
		ResourceVersion: strconv.Itoa(100_000_000 + version),
	}
}

// referContainer returns the reference of the kubelet to the container of a Pod.
func referContainer(i, version int) *corev1.ObjectReference {
	r := refer("v1", "Pod", i, version)
	r.FieldPath = "spec.containers{" + container + "}"
	return r
}

// node returns the name of the node of a Pod. A kubelet runs at most 110 Pods.
func node(pod int) string { return fmt.Sprintf("node-%02d", pod%10) }

// hotLoop reconciles n objects every 5 seconds, and fails. If updated is true, it
// writes to their status each time.
func hotLoop(c *cluster, n int, updated bool) {
	for version := 0; !c.past(storyTime); time.Sleep(5 * time.Second) {
		if updated {
			version++
		}
		for i := range n {
			c.emit(controller, "", occurrence{
				about: refer("v1", "Pod", i, version), eventType: corev1.EventTypeWarning, reason: reason, action: action, note: note, noteArgs: noteArgs,
			})
		}
	}
}

// slowLoop reconciles n objects, each in a loop of package workload, and fails.
func slowLoop(c *cluster, n int, name string) {
	loops := workload.Loops()
	loop := loops[slices.IndexFunc(loops, func(l workload.Loop) bool { return l.Name == name })]
	var reconcilers sync.WaitGroup
	for i := range n {
		reconcilers.Go(func() {
			time.Sleep(time.Duration(i) * time.Second)
			occur := func(time.Duration) {
				c.emit(controller, "", occurrence{
					about: refer("v1", "Pod", i, 0), eventType: corev1.EventTypeWarning, reason: reason, action: action, note: note, noteArgs: noteArgs,
				})
			}
			loop.Play(storyTime-time.Duration(n)*time.Second, uint64(i), storyTime, time.Sleep, occur, func(time.Duration) {})
		})
	}
	reconcilers.Wait()
}

// crashLoop runs n Pods whose container exits after 5 seconds, as the kubelet of
// Kubernetes 1.36 restarts it: it syncs the Pod when the container exits, and then at
// the end of the back-off or after a minute, with a jitter of up to 50 %. Each sync
// during the back-off emits an event. Times are in whole seconds, so that syncs coincide.
func crashLoop(c *cluster, n int) {
	backOff := flowcontrol.NewBackOff(10*time.Second, 5*time.Minute)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			random := rand.New(rand.NewPCG(0, uint64(i)))
			emit := func(version int, eventType, reason, action, note string, args ...any) {
				c.emit("kubelet", node(i), occurrence{referContainer(i, version), eventType, reason, action, note, args})
				time.Sleep(100 * time.Millisecond)
			}
			p := podNames(i)
			time.Sleep(time.Duration(random.IntN(60)) * time.Second)
			for version := 1; !c.past(storyTime); version++ {
				emit(version, corev1.EventTypeNormal, "Pulled", "Pulling", "Container image %q already present on machine", image)
				emit(version, corev1.EventTypeNormal, "Created", "Creating", "Container created")
				emit(version, corev1.EventTypeNormal, "Started", "Starting", "Container started")
				time.Sleep(5*time.Second - 300*time.Millisecond)
				version++ // the kubelet has written that the container runs
				finished := time.Now()
				for backOff.IsInBackOffSince(p.uid, finished) {
					wait := min(time.Until(finished.Add(backOff.Get(p.uid))), time.Minute)
					emit(version, corev1.EventTypeWarning, "BackOff", "Restarting", "Back-off restarting failed container %s in pod %s",
						container, fmt.Sprintf("%s_%s(%s)", p.name, storyNamespace, p.uid))
					wait += time.Duration(random.Float64() * 0.5 * float64(wait))
					time.Sleep(wait.Truncate(time.Second) + 900*time.Millisecond)
				}
				backOff.Next(p.uid, finished)
			}
		})
	}
	running.Wait()
}

// cronJobs runs n CronJobs every minute. Each Job has one Pod, and a CronJob keeps three
// Jobs. Events about Pods are not part of this story.
func cronJobs(c *cluster, n int) {
	const kept = 3
	job := func(i, minute int) string { return fmt.Sprintf("%s-%d", podNames(i).name, 29_000_000+minute) }
	for minute := range int(storyTime / time.Minute) {
		each := func(offset time.Duration, do func(i int)) {
			c.until(time.Duration(minute)*time.Minute + offset)
			for i := range n {
				do(i)
			}
		}
		cronJob := func(i, version int, reason, action, note string, args ...any) {
			c.emit("cronjob-controller", "", occurrence{refer("batch/v1", "CronJob", i, version), corev1.EventTypeNormal, reason, action, note, args})
		}
		ofJob := func(i int, reason, action, note string, args ...any) {
			about := refer("batch/v1", "Job", minute*n+i, 0)
			about.Name = job(i, minute)
			c.emit("job-controller", "", occurrence{about, corev1.EventTypeNormal, reason, action, note, args})
		}
		each(0, func(i int) {
			cronJob(i, 2*minute, "SuccessfulCreate", "CreateJob", "Created job %v", job(i, minute))
		})
		// Now the controller writes to the CronJob that the Job is active.
		each(time.Second, func(i int) {
			ofJob(i, "SuccessfulCreate", "CreatePod", "Created pod: %v", job(i, minute)+"-x2v4q")
		})
		each(20*time.Second, func(i int) {
			ofJob(i, "Completed", "CompleteJob", "Job completed")
		})
		each(21*time.Second, func(i int) {
			cronJob(i, 2*minute+1, "SawCompletedJob", "SyncStatus", "Saw completed job: %s, condition: %v", job(i, minute), "Complete")
		})
		if minute >= kept {
			each(22*time.Second, func(i int) {
				cronJob(i, 2*minute+1, "SuccessfulDelete", "DeleteJob", "Deleted job %v", job(i, minute-kept))
			})
		}
		// Now the controller writes to the CronJob that the Job is not active.
	}
}

// rollout replaces the n Pods of a Deployment in 40 steps of 15 seconds. Pods from 0 are
// old, Pods from n are new. Each step changes the Deployment and its ReplicaSets.
func rollout(c *cluster, n int) {
	const steps, each = 40, 15 * time.Second
	deployment := podNames(0).name
	for step := range steps {
		from, to := n*step/steps, n*(step+1)/steps
		pods := func(offset time.Duration, do func(i int)) {
			c.until(time.Duration(step)*each + offset)
			for i := from; i < to; i++ {
				do(i)
			}
		}
		emit := func(component, host string, about *corev1.ObjectReference, reason, action, note string, args ...any) {
			c.emit(component, host, occurrence{about, corev1.EventTypeNormal, reason, action, note, args})
		}
		kubelet := func(i int, reason, action, note string, args ...any) {
			emit("kubelet", node(i), referContainer(i, 1), reason, action, note, args...)
		}
		scale := func(version int, direction, replicaSet string, from, to int) {
			emit("deployment-controller", "", refer("apps/v1", "Deployment", 0, version), "ScalingReplicaSet", "Scale",
				"Scaled %s replica set %s from %d to %d", direction, replicaSet, from, to)
		}
		replicaSet := func(number int, reason, action, note string, pod int) {
			emit("replicaset-controller", "", refer("apps/v1", "ReplicaSet", number, step), reason, action, note, podNames(pod).name)
			time.Sleep(time.Millisecond) // the events are about the same object
		}
		c.until(time.Duration(step) * each)
		scale(2*step, "up", deployment+"-5d4f8c7b9", from, to)
		pods(1*time.Second, func(i int) { replicaSet(1, "SuccessfulCreate", "CreatePod", "Created pod: %v", n+i) })
		pods(2*time.Second, func(i int) {
			emit("default-scheduler", "", refer("v1", "Pod", n+i, 0), "Scheduled", "Binding",
				"Successfully assigned %v/%v to %v", storyNamespace, podNames(n+i).name, node(n+i))
		})
		pods(3*time.Second, func(i int) { kubelet(n+i, "Pulling", "Pulling", "Pulling image %q", image) })
		pods(5*time.Second, func(i int) {
			kubelet(n+i, "Pulled", "Pulling", "Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.",
				image, "1.42s", "1.73s", 48_123_456)
		})
		pods(6*time.Second, func(i int) { kubelet(n+i, "Created", "Creating", "Container created") })
		pods(7*time.Second, func(i int) { kubelet(n+i, "Started", "Starting", "Container started") })
		c.until(time.Duration(step)*each + 9*time.Second)
		scale(2*step+1, "down", deployment+"-7d9f8b6c5", n-from, n-to)
		pods(10*time.Second, func(i int) { replicaSet(2, "SuccessfulDelete", "DeletePod", "Deleted pod: %v", i) })
		pods(11*time.Second, func(i int) { kubelet(i, "Killing", "Killing", "Stopping container %s", container) })
	}
}

// distinctEvents emits n events about as many objects, 100 per second.
func distinctEvents(c *cluster, n int) {
	for i := range n {
		c.emit(controller, "", occurrence{
			about: refer("v1", "Pod", i, 0), eventType: corev1.EventTypeWarning, reason: reason, action: action, note: note, noteArgs: noteArgs,
		})
		if i%100 == 99 {
			time.Sleep(time.Second)
		}
	}
}
