// Package integration tests the recorder on a real API server.
//
//	go test ./integration/
//
// The tests build and start the control plane in test/controlplane, and remove
// it when they end. With EVENTSERIES_USE_CLUSTER=1 they run on the cluster that
// KUBECONFIG names instead, each test in its own namespace. Tests that need a
// server of their own, for example to kill it, are skipped there.
package integration
