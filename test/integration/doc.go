// Package integration tests the recorder on a real API server.
//
//	go test ./integration/
//
// The tests build and start the control plane in test/controlplane and leave
// nothing of it behind. With EVENTSERIES_USE_CLUSTER=1 they run on the cluster
// that KUBECONFIG points to instead, each in a namespace of its own; those that
// need a server of their own, to kill it for example, are skipped then.
package integration
