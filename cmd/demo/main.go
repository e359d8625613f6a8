// Command demo shows what the recorder does. It runs a few controllers that fail in a
// loop, and shows their Events on the server: how each becomes a series, gets heartbeats
// and finishes, and how few requests this takes. The demo fails if an Event does not go
// through all of its states, or if a count is wrong.
//
// First the server is in memory, and two hours of virtual time take a second. Then the
// demo compiles and starts a real kube-apiserver, and shows the same in real time, with
// seconds instead of minutes.
//
// Usage, in a clone of the repository:
//
//	go run ./cmd/demo [-keep] [-duration 20s] [-v]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/internal/fakeapi"
)

// options are the parsed command line.
type options struct {
	duration time.Duration
	keep     bool
	verbose  bool
}

const (
	defaultDuration = 20 * time.Second
	// minDuration is long enough for a heartbeat of every series.
	minDuration = heartbeatInterval + 4*time.Second
)

// parseFlags parses the command line. It writes errors and the usage to errOut.
func parseFlags(args []string, errOut io.Writer) (opts options, err error) {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.DurationVar(&opts.duration, "duration", defaultDuration, fmt.Sprintf("how long the controllers emit events on the real server; at least %v", minDuration))
	flags.BoolVar(&opts.keep, "keep", false, "keep the server running at the end, until Ctrl-C")
	flags.BoolVar(&opts.verbose, "v", false, "write the logs of the recorder and the server to standard error")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case opts.duration < minDuration:
		err = fmt.Errorf("-duration %v is too short for a heartbeat; the minimum is %v", opts.duration, minDuration)
	default:
		return opts, nil
	}
	fmt.Fprintln(errOut, err)
	flags.Usage()
	return options{}, err
}

func main() {
	opts, err := parseFlags(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	if !opts.verbose {
		// The result contains the number of dropped occurrences.
		klog.SetLogger(klog.New(nil))
	}
	inVirtualTime(func(ctx context.Context) {
		err = demoInMemory(ctx, os.Stdout)
	}, func() int {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		context.AfterFunc(ctx, stop) // a second Ctrl-C exits at once
		if err == nil {
			err = demo(ctx, opts, os.Stdout, os.Stderr)
		}
		if err == nil {
			return 0
		}
		if ctx.Err() != nil && !errors.Is(err, errWrong) {
			fmt.Fprintln(os.Stderr, "demo: interrupted")
			return 130 // as a shell after Ctrl-C
		}
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	})
}

// demoInMemory runs the controllers on a server in memory, in virtual time, and prints the
// result.
func demoInMemory(ctx context.Context, out io.Writer) error {
	fmt.Fprint(out, "Two hours of a cluster, in virtual time on an API server in memory:\n\n")
	return play(ctx, &fakeapi.Server{}, inHours, out)
}

// demo compiles and starts a server, runs the controllers on it, prints the result, and
// stops the server. An interrupt before the server has started is not an error: people
// have seen the result in memory.
func demo(ctx context.Context, opts options, out, errOut io.Writer) error {
	fmt.Fprint(out, "\nNow the same on a real kube-apiserver and etcd, in real time: with seconds instead of minutes.\n")
	binary, err := controlplane.Build(ctx, errOut, "test/controlplane", "cmd/kubectl-series")
	switch {
	case ctx.Err() != nil:
		fmt.Fprint(out, "Stopped before the real server has started. make demo continues with what is compiled.\n")
		return nil //nolint:nilerr // the interrupt is the cause
	case err != nil:
		return err
	}
	fmt.Fprint(out, "Starting kube-apiserver and etcd: ")
	began := time.Now()
	serverOpts := controlplane.Options{Binary: binary}
	if opts.verbose {
		serverOpts.Log = errOut
	}
	server, err := controlplane.Start(ctx, serverOpts)
	if err != nil {
		fmt.Fprintln(out)
		return err
	}
	fmt.Fprintf(out, "ready after %.1fs\nTo see the Events with kubectl:\n", time.Since(began).Seconds())
	for _, get := range []string{"get events.events.k8s.io", "events"} {
		fmt.Fprintf(out, "  KUBECONFIG=%q kubectl %s -A\n", server.Kubeconfig(), get)
	}
	fmt.Fprintln(out)
	return errors.Join(demoOn(ctx, server.Kubeconfig(), opts, out), server.Stop())
}

// demoOn runs the controllers on the server of a kubeconfig, and prints the result.
func demoOn(ctx context.Context, kubeconfig string, opts options, out io.Writer) error {
	client, err := newClient(ctx, kubeconfig)
	if err != nil {
		return err
	}
	err = play(ctx, client, inSeconds(opts.duration), out)
	if err != nil && !errors.Is(err, errWrong) {
		return err
	}
	if !opts.keep {
		kubeconfig = "…"
		fmt.Fprint(out, "\nTo keep the server running, and find out why checkout-0 crashes: make demo DEMO_FLAGS=--keep\n")
	} else {
		fmt.Fprint(out, "\nThe server runs until Ctrl-C. To find out why checkout-0 crashes, run in another terminal:\n")
	}
	fmt.Fprintf(out, "  export KUBECONFIG=%q\n"+
		"  bin/kubectl-series timeline pod/checkout-0 -n "+namespace+" --follow\n"+
		"  bin/kubectl-series pvc/orders-data -n "+namespace+"\n"+
		"  bin/kubectl-series top -A\n"+
		"After make install-plugin, kubectl series does the same.\n", kubeconfig)
	if opts.keep {
		<-ctx.Done()
	}
	return err
}
