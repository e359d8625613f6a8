// Command kube-scheduler is the kube-scheduler of Kubernetes with a selectable recorder
// of events. It takes the flags of kube-scheduler, and two more:
//
//	kube-scheduler --recorder eventseries --report FILE --kubeconfig FILE --leader-elect=false
//
// SIGTERM and SIGINT stop it. Then it writes to the file how many events the scheduler has
// emitted about each object. With leader election, Kubernetes exits without returning,
// so that the program neither shuts down the recorder nor writes the file.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // as kube-scheduler does
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
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

// run runs the scheduler until ctx ends, and writes the report.
func run(ctx context.Context, args []string) error {
	opts := options.NewOptions()
	fs := pflag.NewFlagSet("kube-scheduler", pflag.ContinueOnError)
	for _, set := range opts.Flags.FlagSets {
		fs.AddFlagSet(set)
	}
	recorder := fs.String("recorder", "client-go", "the recorder of events: client-go, or eventseries")
	report := fs.String("report", "", "the file for the number of events by the name of the object, in JSON")
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("kube-scheduler: %w", err)
	}
	if err := opts.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("kube-scheduler: feature gates: %w", err)
	}
	gates := opts.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(opts.Logs, gates); err != nil {
		return fmt.Errorf("kube-scheduler: logs: %w", err)
	}
	emitted := newCounter()
	if err := schedule(ctx, opts, *recorder, emitted); ctx.Err() == nil {
		return fmt.Errorf("kube-scheduler: %w", err)
	}
	content, err := json.Marshal(emitted.counts())
	if err != nil {
		return fmt.Errorf("kube-scheduler: report: %w", err)
	}
	if err := os.WriteFile(*report, content, 0o600); err != nil {
		return fmt.Errorf("kube-scheduler: report: %w", err)
	}
	return nil
}

// schedule does what the command of Kubernetes does (app.Setup and app.Run), but with the
// recorder. It returns when ctx has ended and the recorder is shut down, or with an error.
func schedule(ctx context.Context, opts *options.Options, recorder string, emitted *counter) error {
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
	if err := useRecorder(c, recorder, emitted); err != nil {
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
func useRecorder(c *config.Config, recorder string, emitted *counter) error {
	switch recorder {
	case "client-go":
	case "eventseries":
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
	c.EventBroadcaster = counting{c.EventBroadcaster, emitted}
	return nil
}
