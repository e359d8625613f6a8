// Package controlplane builds, starts and stops a real Kubernetes API server and
// its etcd, for the demo and the tests. The program is in test/controlplane.
//
//	binary, err := controlplane.Build(ctx, os.Stderr)
//	…
//	server, err := controlplane.Start(ctx, controlplane.Options{Binary: binary})
//	…
//	defer server.Stop()
//
// The server runs in a separate process, so that a test can pause it, kill it and
// restart it with the same data and address. It never outlives the process that
// started it, even if that process is killed.
package controlplane
