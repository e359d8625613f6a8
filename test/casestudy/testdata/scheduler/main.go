// Command scheduler is the kube-scheduler of Kubernetes with a selectable recorder of
// events. Command casestudy copies it into Kubernetes. It takes the flags of
// kube-scheduler. $KUBECONFIG is for the API server, and $CASESTUDY_CONFIG names the file
// with a [recorders.Config]. SIGTERM and SIGINT stop it, and then it writes how many events
// the scheduler has emitted. With leader election, Kubernetes exits without returning, so
// that the program neither shuts down the recorder nor writes the file.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientevents "k8s.io/client-go/tools/events"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // as kube-scheduler does
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/cmd/recorders"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"

	"github.com/eventseries/eventseries/events"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the scheduler until ctx ends, and writes the counts.
func run(ctx context.Context, args []string) error {
	study, err := recorders.ReadConfig()
	if err != nil {
		return err
	}
	opts := options.NewOptions()
	fs := pflag.NewFlagSet("scheduler", pflag.ContinueOnError)
	for _, set := range opts.Flags.FlagSets {
		fs.AddFlagSet(set)
	}
	if err := fs.Parse(append(args, "--kubeconfig="+os.Getenv("KUBECONFIG"))); err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	if err := opts.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("scheduler: feature gates: %w", err)
	}
	gates := opts.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(opts.Logs, gates); err != nil {
		return fmt.Errorf("scheduler: logs: %w", err)
	}
	counter := recorders.NewCounter()
	if err := schedule(ctx, opts, study.Recorder, counter); ctx.Err() == nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	return counter.Write(study.Counts)
}

// schedule does what the command of Kubernetes does (app.Setup and app.Run), but with the
// recorder. It returns when ctx has ended and the recorder is shut down, or with an error.
func schedule(ctx context.Context, opts *options.Options, recorder string, counter *recorders.Counter) error {
	var err error
	if opts.ComponentConfig, err = latest.Default(); err != nil {
		return err
	}
	if errs := opts.Validate(); len(errs) > 0 {
		return errors.Join(errs...)
	}
	c, err := opts.Config(ctx)
	if err != nil {
		return err
	}
	if err := useRecorder(c, recorder, counter); err != nil {
		return err
	}
	cc := c.Complete()
	sched, err := scheduler.New(ctx, cc.Client, cc.InformerFactory, cc.DynInformerFactory, cc.EventBroadcaster.NewRecorder,
		scheduler.WithComponentConfigVersion(cc.ComponentConfig.APIVersion),
		scheduler.WithKubeConfig(cc.KubeConfig),
		scheduler.WithProfiles(cc.ComponentConfig.Profiles...),
		scheduler.WithPercentageOfNodesToScore(cc.ComponentConfig.PercentageOfNodesToScore),
		scheduler.WithPodMaxBackoffSeconds(cc.ComponentConfig.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(cc.ComponentConfig.PodInitialBackoffSeconds),
		scheduler.WithPodMaxInUnschedulablePodsDuration(cc.PodMaxInUnschedulablePodsDuration),
		scheduler.WithExtenders(cc.ComponentConfig.Extenders...),
		scheduler.WithParallelism(cc.ComponentConfig.Parallelism),
	)
	if err != nil {
		return err
	}
	return app.Run(ctx, &cc, sched)
}

// useRecorder replaces the recorder of the scheduler, and counts what the scheduler
// emits. Kubernetes has already chosen client-go's.
func useRecorder(c *config.Config, recorder string, counter *recorders.Counter) error {
	switch recorder {
	case recorders.ToolsEvents:
	case recorders.Eventseries:
		// A client of its own, as in options.Config. The context does not end: app.Run
		// shuts down the recorder after the scheduler.
		client, err := kubernetes.NewForConfig(c.KubeConfig)
		if err != nil {
			return err
		}
		c.EventBroadcaster.Shutdown()
		c.EventBroadcaster = events.NewEventBroadcasterAdapter(client) //nolint:staticcheck // kube-scheduler uses adapters
	default:
		return fmt.Errorf("no recorder %q", recorder)
	}
	c.EventBroadcaster = counting{c.EventBroadcaster, counter}
	return nil
}

// counting is an adapter whose recorders count the events that they pass on.
type counting struct {
	clientevents.EventBroadcasterAdapter
	counter *recorders.Counter
}

// NewRecorder returns a recorder that counts events.
func (c counting) NewRecorder(name string) clientevents.EventRecorderLogger {
	return countingRecorder{c.EventBroadcasterAdapter.NewRecorder(name), c.counter}
}

type countingRecorder struct {
	clientevents.EventRecorderLogger
	counter *recorders.Counter
}

// Eventf counts an event, and passes it on.
func (r countingRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.counter.Add(regarding)
	r.EventRecorderLogger.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

// WithLogger returns a recorder with a logger, which counts events, too.
func (r countingRecorder) WithLogger(logger klog.Logger) clientevents.EventRecorderLogger {
	return countingRecorder{r.EventRecorderLogger.WithLogger(logger), r.counter}
}
