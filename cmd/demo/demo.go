package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// demoInMemory runs a session with a server in memory and prints the result. It returns
// errWrong if the result is wrong. It runs in virtual time.
func demoInMemory(ctx context.Context, opts options, out *os.File) error {
	fmt.Fprint(out, "Two hours of a cluster, in virtual time on an API server in memory:\n\n")
	return runSession(ctx, newMemory(), inHours(), opts, out)
}

// demo compiles and starts a server, runs a session and stops the server. It returns
// errWrong if the result is wrong. An interrupt before the server has started is not an
// error: people have seen the result in memory.
func demo(ctx context.Context, opts options, out, errOut *os.File) error {
	fmt.Fprint(out, "\nNow the same on a real kube-apiserver and etcd, in real time: with seconds instead of minutes.\n")
	binary, err := controlplane.Build(ctx, errOut, "cmd/kubectl-series")
	if err != nil && ctx.Err() != nil {
		fmt.Fprint(out, "Stopped before the real server has started. make demo continues with what is compiled.\n")
		return nil
	}
	if err != nil {
		return err
	}
	server, err := startServer(ctx, binary, opts, out, errOut)
	if err != nil {
		return orCause(ctx, err)
	}
	err = demoOn(ctx, server.Kubeconfig(), opts, out)
	return errors.Join(orCause(ctx, err), server.Stop())
}

func startServer(ctx context.Context, binary string, opts options, out, errOut *os.File) (*controlplane.Server, error) {
	fmt.Fprint(out, "Starting kube-apiserver and etcd: ")
	began := time.Now()
	serverOpts := controlplane.Options{Binary: binary}
	if opts.verbose {
		serverOpts.Log = errOut
	}
	server, err := controlplane.Start(ctx, serverOpts)
	if err != nil {
		fmt.Fprintln(out)
		return nil, err
	}
	fmt.Fprintf(out, "ready after %.1fs\n", time.Since(began).Seconds())
	fmt.Fprintf(out, "To see the Events with kubectl:\n%s\n", kubectl(server.Kubeconfig()))
	return server, nil
}

// demoOn runs a session with the server of a kubeconfig, and prints the result.
func demoOn(ctx context.Context, kubeconfig string, opts options, out *os.File) error {
	clients, err := newClients(kubeconfig)
	if err != nil {
		return err
	}
	if err := clients.prepare(ctx); err != nil {
		return err
	}
	err = runSession(ctx, clients, inSeconds(opts.duration), opts, out)
	if err != nil && !errors.Is(err, errWrong) {
		return err
	}
	if !opts.keep {
		fmt.Fprintf(out, "\nTo keep the server running, and find out why checkout-0 crashes: make demo DEMO_FLAGS=--keep\n%s", commands("…"))
		return err
	}
	fmt.Fprintf(out, "\nThe server runs until Ctrl-C. To find out why checkout-0 crashes, run in another terminal:\n%s", commands(kubeconfig))
	<-ctx.Done()
	return err
}

// runSession runs a session and prints the result. It returns errWrong if the result is
// wrong.
func runSession(ctx context.Context, server server, pace pace, opts options, out *os.File) error {
	result, err := newSession(server, pace, newDisplay(out, opts.verbose)).run(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%v", result)
	return result.err()
}

// commands returns commands that find the cause of a problem with kubectl series. make demo builds it.
func commands(kubeconfig string) string {
	return fmt.Sprintf("  export KUBECONFIG=%q\n", kubeconfig) +
		"  bin/kubectl-series timeline pod/checkout-0 -n " + namespace + " --follow\n" +
		"  bin/kubectl-series pvc/orders-data -n " + namespace + "\n" +
		"  bin/kubectl-series top -A\n" +
		"After make install-plugin, kubectl series does the same.\n"
}

// kubectl returns commands that show the Events of a server.
func kubectl(kubeconfig string) string {
	return fmt.Sprintf("  KUBECONFIG=%[1]q kubectl get events.events.k8s.io -A\n  KUBECONFIG=%[1]q kubectl events -A\n", kubeconfig)
}
