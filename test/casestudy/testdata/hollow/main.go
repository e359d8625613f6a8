// Command hollow runs the kubelet of a hollow node as kubemark does, with a selectable
// recorder of events. make casestudy-kubelet copies it into Kubernetes. $KUBECONFIG is for
// the API server, and $CASESTUDY_CONFIG names the file with a [recorders.Config]. SIGTERM
// stops the kubelet, and then the program writes how many events it has emitted.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	stockrecord "k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	apitest "k8s.io/cri-api/pkg/apis/testing"
	kubelettypes "k8s.io/kubelet/pkg/types"
	"k8s.io/kubernetes/cmd/recorders"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"

	"github.com/eventseries/eventseries/compat/record"
	"github.com/eventseries/eventseries/events"
)

const (
	// crashAfter is for how long a container runs that exits, before it is scaled.
	crashAfter = 5 * time.Second
	// drain is the time for client-go's recorder to write what it has queued. It has no
	// method that waits for that.
	drain = 2 * time.Second
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	config, err := recorders.ReadConfig()
	if err != nil {
		return err
	}
	clientConfig, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return fmt.Errorf("hollow: %w", err)
	}

	flags, kubelet := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{NodeName: recorders.Node, MaxPods: 200})
	defer os.RemoveAll(flags.RootDirectory)
	kubelet.EnableServer = false                // kubemark's listens on all interfaces
	kubelet.ClusterDNS = []string{"10.96.0.10"} // without one, each sync of a Pod emits a warning
	kubelet.SyncFrequency.Duration = config.Scaled(time.Minute)
	maxRestart := &kubelet.CrashLoopBackOff.MaxContainerRestartPeriod.Duration
	*maxRestart = config.Scaled(*maxRestart)
	// A kubelet has a client of its own for Events. These are the defaults of both.
	clientConfig.QPS, clientConfig.Burst = 50*float32(config.Scale), 100*config.Scale
	client, err := kubernetes.NewForConfig(clientConfig)
	if err != nil {
		return fmt.Errorf("hollow: %w", err)
	}
	eventClient, err := kubernetes.NewForConfig(clientConfig)
	if err != nil {
		return fmt.Errorf("hollow: %w", err)
	}

	// The rest of this function is makeEventRecorder of cmd/kubelet/app. kubemark has no
	// recorder.
	broadcaster, err := newBroadcaster(ctx, config)
	if err != nil {
		return err
	}
	recorder := broadcaster.NewRecorder(legacyscheme.Scheme, corev1.EventSource{Component: "kubelet", Host: recorders.Node})
	broadcaster.StartStructuredLogging(3)
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: eventClient.CoreV1().Events("")})

	counter := recorders.NewCounter()
	containers := &containerRuntime{apitest.NewFakeRuntimeService(), config.Scaled(crashAfter)}
	containers.FakeStatus = &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: true},
	}}
	node := kubemark.NewHollowKubelet(flags, kubelet, client, client, &cadvisortest.Fake{NodeName: recorders.Node},
		apitest.NewFakeImageService(), containers, cm.NewStubContainerManager())
	node.KubeletDeps.Recorder = counter.Recorder(recorder)
	node.KubeletDeps.ProbeManager = nil // the real one
	go node.Run(ctx)

	<-stopped.Done()
	counter.Close()
	time.Sleep(drain)
	cancel()
	broadcaster.Shutdown()
	return counter.Write(config.Counts)
}

// newBroadcaster returns a broadcaster as the kubelet makes it, of one of two packages. The
// options only scale the time.
func newBroadcaster(ctx context.Context, config recorders.Config) (stockrecord.EventBroadcaster, error) {
	switch config.Recorder {
	case recorders.ToolsRecord:
		return stockrecord.NewBroadcaster(stockrecord.WithContext(ctx), stockrecord.WithCorrelatorOptions(config.Correlator())), nil
	case recorders.CompatRecord:
		return record.NewBroadcaster(record.WithContext(ctx), record.WithOptions(config.ScaleOptions)), nil
	case recorders.LateCompatRecord:
		return record.NewBroadcaster(record.WithContext(ctx), record.WithOptions(config.ScaleOptions), record.WithOptions(func(o *events.Options) {
			o.FirstHeartbeat = 0
		})), nil
	default:
		return nil, fmt.Errorf("hollow: no recorder %q", config.Recorder)
	}
}

// containerRuntime is a fake container runtime. The containers of some Pods exit.
type containerRuntime struct {
	*apitest.FakeRuntimeService
	after time.Duration
}

// StartContainer starts a container, which may exit after a while.
func (r *containerRuntime) StartContainer(ctx context.Context, id string) error {
	if err := r.FakeRuntimeService.StartContainer(ctx, id); err != nil {
		return err
	}
	r.Lock()
	defer r.Unlock()
	if container := r.Containers[id]; container != nil && strings.HasPrefix(kubelettypes.GetPodName(container.Labels), recorders.Crashing) {
		time.AfterFunc(r.after, func() { r.exit(container) })
	}
	return nil
}

func (r *containerRuntime) exit(container *apitest.FakeContainer) {
	r.Lock()
	defer r.Unlock()
	container.State, container.ExitCode, container.Reason = runtimeapi.ContainerState_CONTAINER_EXITED, 1, "Error"
	container.FinishedAt = time.Now().UnixNano()
}
