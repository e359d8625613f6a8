package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// apiServerStop bounds the clean stop of the API server. It usually takes a second or
// two, until the watches end.
const apiServerStop = 8 * time.Second

// apiServer is a kube-apiserver that runs in this process.
type apiServer struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid after done is closed
}

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

// stop stops the server and waits for its exit.
func (s *apiServer) stop() error {
	s.cancel()
	select {
	case <-s.done:
	case <-time.After(apiServerStop):
		return fmt.Errorf("controlplane: kube-apiserver is still running %v after the stop request", apiServerStop)
	}
	if s.err != nil {
		return fmt.Errorf("controlplane: kube-apiserver: %w", s.err)
	}
	return nil
}

// apiServerArgs returns the flags of the kube-apiserver.
func apiServerArgs(cfg config, creds credentials) []string {
	return append([]string{
		"--etcd-servers=http://" + cmp.Or(cfg.etcdEndpoint, loopback(cfg.etcdPort)),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(cfg.port),
		"--cert-dir=" + certDir(cfg),
		"--service-cluster-ip-range=10.0.0.0/24",
		// There is no cluster network that needs the server's address, and a killed
		// server could not remove it.
		"--endpoint-reconciler-type=none",
		"--token-auth-file=" + creds.tokenFile,
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + creds.serviceAccountKey,
		"--service-account-signing-key-file=" + creds.serviceAccountKey,
		// There are no service accounts, so this plugin would reject every Pod.
		"--disable-admission-plugins=ServiceAccount",
		"--event-ttl=" + cfg.eventTTL.String(),
		"--profiling=false",
		// Without a grace period the server waits a minute for clients to end their
		// watches.
		"--shutdown-watch-termination-grace-period=1s",
	}, cfg.apiserverArgs...)
}

// certDir returns the directory of the serving certificate. The API server creates
// apiserver.crt on its first start, with the certificate and its issuer's.
func certDir(cfg config) string { return filepath.Join(cfg.dataDir, "certs") }

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
