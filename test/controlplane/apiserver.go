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

// apiServerStop bounds the API server's own clean stop. It mostly ends within a
// second or two, when its watchers have gone.
const apiServerStop = 8 * time.Second

// apiServer is a kube-apiserver that runs in this process.
type apiServer struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // why it ended; to be read when done is closed
}

// startAPIServer starts a kube-apiserver with the given flags and returns
// without waiting until it serves. The caller stops it. There can be only one
// in the life of a process, since Kubernetes keeps much of it in globals.
func startAPIServer(args []string, verbosity int) (*apiServer, error) {
	if err := quietLogs(verbosity); err != nil {
		return nil, err
	}
	// What follows is app.NewAPIServerCommand without its signal handler, which
	// leaves no room for stopping etcd afterwards.
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
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // of its requests to itself

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

// stop stops the server and waits for it.
func (s *apiServer) stop() error {
	s.cancel()
	select {
	case <-s.done:
	case <-time.After(apiServerStop):
		return fmt.Errorf("controlplane: kube-apiserver still runs %v after it was told to stop", apiServerStop)
	}
	if s.err != nil {
		return fmt.Errorf("controlplane: kube-apiserver: %w", s.err)
	}
	return nil
}

// apiServerArgs returns the kube-apiserver's flags.
func apiServerArgs(cfg config, dir string, p ports, creds credentials) []string {
	args := []string{
		"--etcd-servers=http://" + cmp.Or(cfg.etcdEndpoint, loopback(p.Etcd)),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(p.API),
		"--cert-dir=" + certDir(dir),
		"--service-cluster-ip-range=10.0.0.0/24",
		// There is no network behind the server that its address could be
		// published to, and a killed server could not take it back.
		"--endpoint-reconciler-type=none",
		"--token-auth-file=" + creds.tokenFile,
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + creds.serviceAccountKey,
		"--service-account-signing-key-file=" + creds.serviceAccountKey,
		"--disable-admission-plugins=" + cfg.disableAdmission,
		"--event-ttl=" + cfg.eventTTL.String(),
		"--profiling=false",
		// Without a grace period nobody ends the watches, and the stop waits a
		// minute for clients to do so.
		"--shutdown-watch-termination-grace-period=1s",
	}
	if cfg.enableAdmission != "" {
		args = append(args, "--enable-admission-plugins="+cfg.enableAdmission)
	}
	if cfg.admissionConfig != "" {
		args = append(args, "--admission-control-config-file="+cfg.admissionConfig)
	}
	return append(args, cfg.apiserverArgs...)
}

// certDir is where the API server puts the certificate that it makes for
// itself at the first start.
func certDir(dir string) string { return filepath.Join(dir, "certs") }

// servingCert is the file of that certificate, followed by its issuer's.
func servingCert(dir string) string { return filepath.Join(certDir(dir), "apiserver.crt") }

// quietLogs keeps everything but errors off stderr unless it is asked for. The
// warnings of a healthy start (API versions without resources, connections
// tried and given up) fill more than a screen.
func quietLogs(verbosity int) error {
	fs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(fs)
	values := map[string]string{"v": strconv.Itoa(verbosity)}
	if verbosity == 0 {
		values["legacy_stderr_threshold_behavior"] = "false" // else the next is ignored
		values["stderrthreshold"] = "ERROR"
	}
	for name, value := range values {
		if err := fs.Set(name, value); err != nil {
			return fmt.Errorf("controlplane: log flag %s=%s: %w", name, value, err)
		}
	}
	return nil
}
