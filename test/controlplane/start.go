//go:build !oldserver

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// startAPIServer starts a kube-apiserver with the given flags. Its serving certificate
// exists when startAPIServer returns, but it may not be ready. A process can start
// only one, because Kubernetes keeps much of its state in global variables.
func startAPIServer(args []string, verbosity int) (*apiServer, error) {
	if err := configureLogs(verbosity); err != nil {
		return nil, err
	}
	// This is app.NewAPIServerCommand without the signal handler, which would not let
	// us stop etcd afterwards.
	opts := options.NewServerRunOptions()
	fs := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range opts.Flags().FlagSets {
		fs.AddFlagSet(set)
	}
	if err := fs.Parse(args); err != nil {
		return nil, fmt.Errorf("controlplane: kube-apiserver: %w", err)
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("controlplane: kube-apiserver: unexpected argument %q", fs.Arg(0))
	}
	if err := opts.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("controlplane: kube-apiserver: feature gates: %w", err)
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // about requests to itself

	ctx, cancel := context.WithCancel(context.Background())
	completed, err := opts.Complete(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("controlplane: kube-apiserver: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		cancel()
		return nil, fmt.Errorf("controlplane: kube-apiserver: %w", errors.Join(errs...))
	}
	s := &apiServer{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = app.Run(ctx, completed)
	}()
	return s, nil
}

// configureLogs limits the log to errors if verbosity is 0. A healthy start logs more
// than a screen of warnings.
func configureLogs(verbosity int) error {
	args := []string{"-v=" + strconv.Itoa(verbosity)}
	if verbosity == 0 {
		// klog ignores the threshold without the first of these flags.
		args = append(args, "-legacy_stderr_threshold_behavior=false", "-stderrthreshold=ERROR")
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("controlplane: log flags: %w", err)
	}
	return nil
}
