package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// startTimeout bounds the start of a server, which takes a few seconds.
const startTimeout = 2 * time.Minute

// demo starts a server, shows what the controllers record on it, and stops it.
// It returns an error if anything is not as it should be: errWrong if that is
// what the demo has found.
func demo(ctx context.Context, opts options, out, errOut *os.File) error {
	binary, err := controlplane.Build(ctx, errOut)
	if err != nil {
		return orInterrupted(ctx, err)
	}
	server, err := startServer(ctx, binary, opts, out, errOut)
	if err != nil {
		return orInterrupted(ctx, err)
	}
	err = play(ctx, server.Kubeconfig(), opts, out)
	return errors.Join(orInterrupted(ctx, err), server.Stop())
}

func startServer(ctx context.Context, binary string, opts options, out, errOut *os.File) (*controlplane.Server, error) {
	fmt.Fprint(out, "Starting a kube-apiserver with its etcd: ")
	began := time.Now()
	starting := controlplane.Options{Binary: binary}
	if opts.verbose {
		starting.Log = errOut
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	server, err := controlplane.Start(ctx, starting)
	if err != nil {
		fmt.Fprintln(out)
		return nil, err
	}
	fmt.Fprintf(out, "ready after %.1fs\n", time.Since(began).Seconds())
	fmt.Fprintf(out, "To look at the Events with kubectl as well, while this goes on:\n%s\n", kubectl(server.Kubeconfig()))
	return server, nil
}

// play runs the controllers against the server of a kubeconfig, and prints what
// was found.
func play(ctx context.Context, kubeconfig string, opts options, out *os.File) error {
	counted := &requests{}
	clients, err := newClients(kubeconfig, counted)
	if err != nil {
		return err
	}
	if err := clients.prepare(ctx); err != nil {
		return err
	}
	found, err := newSession(clients, counted, newDisplay(out, opts.verbose)).run(ctx, opts.duration)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%v\n", found)
	if !opts.keep {
		fmt.Fprintln(out, "To look at the Events with kubectl: make demo DEMO_FLAGS=-keep")
		return found.err()
	}
	fmt.Fprintf(out, "The server runs until Ctrl-C. To look at the Events:\n%s", kubectl(kubeconfig))
	<-ctx.Done()
	return found.err()
}

// kubectl returns commands that show the Events on a server.
func kubectl(kubeconfig string) string {
	return fmt.Sprintf("  KUBECONFIG=%[1]q kubectl get events.events.k8s.io -A\n  KUBECONFIG=%[1]q kubectl events -A\n", kubeconfig)
}
