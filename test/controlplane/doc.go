// Command controlplane runs a real Kubernetes API server and the etcd behind it
// in one process, for the integration tests, the benchmarks and the demo.
//
// There is no controller manager, no scheduler and no kubelet. So a namespace
// that is deleted stays Terminating, a Pod that is created stays Pending, and
// the roles that are put together from others (view, edit, admin) are empty.
// Everything listens on 127.0.0.1 only.
//
//	controlplane --data-dir DIR --kubeconfig FILE --event-ttl 1h
//
// When it serves, it writes the kubeconfig and prints one line on standard
// output, the only one that it ever prints there:
//
//	ready https://127.0.0.1:PORT kubeconfig=FILE
//
// SIGTERM, SIGINT and SIGHUP stop it, the API server first and etcd after it,
// with exit code 0. A second start with the same --data-dir finds the objects,
// the ports, the certificate and the tokens of the first, also after SIGKILL.
//
// Authorization is RBAC. The kubeconfig's own user is a member of
// system:masters; --user adds others, each with a context of its own name.
// Arguments after "--" go to the kube-apiserver as they are.
//
// etcd never calls fsync: a killed process loses nothing, a machine that loses
// power may lose everything. That is the right bargain for a test.
package main
