package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// demo starts a server, runs a session and stops the server. It returns errWrong if the
// result is wrong.
func demo(ctx context.Context, opts options, out, errOut *os.File) error {
	binary, err := controlplane.Build(ctx, errOut)
	if err != nil {
		return orCause(ctx, err)
	}
	server, err := startServer(ctx, binary, opts, out, errOut)
	if err != nil {
		return orCause(ctx, err)
	}
	err = runSession(ctx, server.Kubeconfig(), opts, out)
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

// runSession runs a session with the server of a kubeconfig, and prints the result.
func runSession(ctx context.Context, kubeconfig string, opts options, out *os.File) error {
	counted := &requests{}
	clients, err := newClients(kubeconfig, counted)
	if err != nil {
		return err
	}
	if err := clients.prepare(ctx); err != nil {
		return err
	}
	result, err := newSession(clients, counted, newDisplay(out, opts.verbose)).run(ctx, opts.duration)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%v\n", result)
	if !opts.keep {
		fmt.Fprintf(out, "To keep the server running, and find out why checkout-0 crashes: make demo DEMO_FLAGS=--keep\n%s", commands("…"))
		return result.err()
	}
	fmt.Fprintf(out, "The server runs until Ctrl-C. To find out why checkout-0 crashes, run in another terminal:\n%s", commands(kubeconfig))
	<-ctx.Done()
	return result.err()
}

// commands returns commands that find the cause of a problem with kubectl series. make demo builds it.
func commands(kubeconfig string) string {
	return fmt.Sprintf("  export KUBECONFIG=%q\n", kubeconfig) +
		"  bin/kubectl-series timeline pod/checkout-0 -n " + namespace + "\n" +
		"  bin/kubectl-series pvc/orders-data -n " + namespace + "\n" +
		"  bin/kubectl-series top -A\n" +
		"After make install-plugin, kubectl series does the same.\n"
}

// kubectl returns commands that show the Events of a server.
func kubectl(kubeconfig string) string {
	return fmt.Sprintf("  KUBECONFIG=%[1]q kubectl get events.events.k8s.io -A\n  KUBECONFIG=%[1]q kubectl events -A\n", kubeconfig)
}
