//go:build oldserver

package main

import (
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apiserver/pkg/server"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// startAPIServer starts an older kube-apiserver for make integration SERVER=v1.30.4. It uses the command,
// which all versions have in common. The serving certificate appears later.
func startAPIServer(args []string, _ int) (*apiServer, error) {
	command := app.NewAPIServerCommand()
	if command.Flags().Lookup("shutdown-watch-termination-grace-period") == nil {
		args = slices.DeleteFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--shutdown-watch-termination-grace-period") })
	}
	if command.Flags().Lookup("insecure-port") != nil { // before 1.24
		args = append([]string{"--insecure-port=0", "--feature-gates=RemoveSelfLink=true"}, args...)
	}
	command.SetArgs(args)

	// The command stops at one of these signals, too, and exits at once at a second one.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	s := &apiServer{done: make(chan struct{}), cancel: func() {
		signal.Stop(signals)
		if len(signals) == 0 {
			server.RequestShutdown()
		}
	}}
	go func() {
		defer close(s.done)
		s.err = command.Execute()
	}()
	return s, nil
}
