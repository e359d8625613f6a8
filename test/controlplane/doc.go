// Command controlplane runs a real Kubernetes API server and etcd in one process, for
// the integration tests, the benchmarks and the demo.
//
// There is no controller manager, scheduler or kubelet. Deleted namespaces stay
// Terminating, Pods stay Pending, and the aggregated roles (view, edit, admin) are
// empty. The servers listen on 127.0.0.1 only.
//
//	controlplane --data-dir DIR --kubeconfig FILE --event-ttl 1h
//
// When the API server is ready, the program writes the kubeconfig and prints its only
// line to standard output:
//
//	ready https://127.0.0.1:PORT kubeconfig=FILE
//
// SIGTERM, SIGINT and SIGHUP stop the API server and then etcd; the exit code is 0.
// The next start with the same --data-dir keeps the objects, the ports, the
// certificate and the administrator's token, even after SIGKILL.
//
// The authorization mode is RBAC. The default user of the kubeconfig is in the group
// system:masters; --user adds users, and a context with the name of each. The program
// passes arguments after "--" to kube-apiserver.
//
// etcd does not call fsync. A killed process loses no data, but a power failure may.
package main
