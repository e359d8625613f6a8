package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/casestudy/recorders"
)

const (
	// kubeletScale is how much faster time passes for the kubelet. With it, the 10 seconds
	// between two probes become one, which is the shortest period of a probe.
	kubeletScale = 10

	// The names of Pods begin with recorders.Crashing or one of these.
	unready  = "probe-" // a readiness probe fails
	unmounts = "mount-" // the Secret of a volume does not exist
)

var (
	kubeletProgram = program{
		Module: kubernetesModule, Version: kubernetesVersion, Staging: kubernetesStaging,
		Users: []controlplane.User{{Name: "kubelet", Token: "kubelet-token", Groups: []string{"system:masters"}}},
	}
	kubeletRecorders = []string{recorders.ToolsRecord, recorders.CompatRecord, recorders.LateCompatRecord}

	// podGroups are the groups of Pods, and the Node.
	podGroups = []string{recorders.Crashing, unready, unmounts, recorders.Node}
	podCounts = map[string]int{recorders.Crashing: 100, unready: 10, unmounts: 10}

	// podSpecs are what the Pods do not have in common.
	podSpecs = map[string]string{
		recorders.Crashing: `containers: [{name: app, image: "example.com/app:1"}]`,
		unready: `containers: [{name: app, image: "example.com/app:1",
    readinessProbe: {periodSeconds: 1, httpGet: {host: 127.0.0.1, port: 1}}}]`,
		unmounts: `containers: [{name: app, image: "example.com/app:1", volumeMounts: [{name: settings, mountPath: /settings}]}]
  volumes: [{name: settings, secret: {secretName: missing}}]`,
	}
)

// duration is a place in Kubernetes that contains a duration: the text Before it, and the
// duration itself.
type duration struct{ File, Before, Duration string }

// kubeletDurations are constants of the kubelet that are scaled.
var kubeletDurations = []duration{
	{"pkg/kubelet/kubelet.go", "initialCrashLoopBackOff = ", "time.Second * 10"},
	{"pkg/kubelet/kubelet.go", "eventTime.Sub(lastUpdate) > ", "600*time.Second"}, // forgets a crash
	{"pkg/kubelet/kubelet.go", "\tbackOffPeriod = ", "time.Second * 10"},
	{"pkg/kubelet/kubelet.go", "genericPlegRelistPeriod    = ", "time.Second * 1"},
	{"pkg/kubelet/kubelet.go", "syncTicker := time.NewTicker(", "time.Second"},
	{"pkg/kubelet/volumemanager/volume_manager.go", "podAttachAndMountTimeout = ", "2*time.Minute + 3*time.Second"},
	{"pkg/util/goroutinemap/exponentialbackoff/exponential_backoff.go", "initialDurationBeforeRetry = ", "500 * time.Millisecond"},
	{"pkg/util/goroutinemap/exponentialbackoff/exponential_backoff.go", "maxDurationBeforeRetry = ", "2*time.Minute + 2*time.Second"},
}

// kubeletResults are the figures of the kubelet.
type kubeletResults struct {
	Machine, Date, Version string
	Scale                  int // an hour takes an hour divided by this
	Pods                   map[string]int
	Runs                   []*recorderRun
}

// kubelet runs the kubelet of a hollow node with each recorder, one after the other.
func kubelet(ctx context.Context, cfg config, r *kubeletResults) error {
	m := &mover{program: kubeletProgram, root: cfg.root, work: filepath.Join(cfg.work, "kubelet"), duration: time.Hour / kubeletScale}
	apiserver, err := controlplane.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	binary, err := m.buildKubelet(ctx, apiserver)
	if err != nil {
		return err
	}
	t := trial{
		binary: binary, user: m.Users[0], groups: podGroups, scale: kubeletScale,
		prepare: func(ctx context.Context, c *cluster) error { return c.createNamespace(ctx, shop) },
		args:    func(context.Context) ([]string, error) { return nil, nil },
		begin:   createPods,
	}
	if r.Version != m.Version || r.Scale != kubeletScale {
		*r = kubeletResults{Version: m.Version, Scale: kubeletScale}
	}
	r.Machine, r.Date, r.Pods = machine(), time.Now().UTC().Format(time.DateOnly), podCounts
	return m.tryEach(ctx, cfg, t, apiserver, kubeletRecorders, func(run *recorderRun) error {
		r.Runs = replaceRun(r.Runs, run)
		return writeResults(cfg.resultsOf("kubelet"), r)
	})
}

// buildKubelet compiles the program in testdata/hollow as a part of Kubernetes, whose
// durations are scaled.
func (m *mover) buildKubelet(ctx context.Context, apiserver string) (binary string, err error) {
	if err := m.copyKubernetes(ctx, apiserver, "hollow"); err != nil {
		return "", err
	}
	for _, d := range kubeletDurations {
		if err := m.replace(d.File, d.Before+d.Duration, fmt.Sprintf("%s(%s) / %d", d.Before, d.Duration, kubeletScale)); err != nil {
			return "", err
		}
	}
	// A hollow node has no kernel, and kubemark no recorder for what the kernel of this
	// machine reports.
	if err := m.replace("pkg/kubelet/kubelet.go", "oomwatcher.NewWatcher(kubeDeps.Recorder)", "oomwatcher.NewWatcher(&record.FakeRecorder{})"); err != nil {
		return "", err
	}
	return m.compileTrial(ctx, "kubelet", "./cmd/hollow")
}

// createPods waits until the Node is ready, and creates the Pods. Nothing schedules them.
func createPods(ctx context.Context, c *cluster) error {
	err := c.eventually(ctx, "ready Node", func(ctx context.Context) (bool, error) {
		node, err := c.clients.CoreV1().Nodes().Get(ctx, recorders.Node, metav1.GetOptions{})
		if err != nil {
			return false, ignoreStale(err)
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status == corev1.ConditionTrue, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	for group, n := range podCounts {
		for i := range n {
			if err := c.create(ctx, pod(group, i)); err != nil {
				return err
			}
		}
	}
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		pods, err := c.clients.CoreV1().Pods(shop).List(ctx, metav1.ListOptions{ResourceVersion: "0", FieldSelector: "status.phase=Running"})
		if err != nil {
			return false, err
		}
		return len(pods.Items) >= podCounts[recorders.Crashing], c.running()
	})
}

// pod returns a Pod of a group.
func pod(group string, i int) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: %s, name: %s%d}
spec:
  nodeName: %s
  automountServiceAccountToken: false
  tolerations: [{operator: Exists}]
  %s
`, shop, group, i, recorders.Node, podSpecs[group])
}
