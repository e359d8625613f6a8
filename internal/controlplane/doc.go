// Package controlplane builds, starts and stops the program in
// test/controlplane, a real Kubernetes API server with its etcd, for the demo
// and for the integration tests.
//
//	binary, err := controlplane.Build(ctx, os.Stderr)
//	…
//	server, err := controlplane.Start(ctx, controlplane.Options{Binary: binary})
//	…
//	defer server.Stop()
//
// The server is a process of its own, so that a test can pause it, kill it and
// start it again on the same data and ports. It never outlives the process that
// started it, however that one ends.
package controlplane
