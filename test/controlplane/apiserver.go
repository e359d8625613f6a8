package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"time"
)

// apiServerStop bounds the clean stop of the API server. It usually takes a second or
// two, until the watches end.
const apiServerStop = 8 * time.Second

// apiServer is a kube-apiserver that runs in this process.
type apiServer struct {
	cancel func()
	done   chan struct{}
	err    error // valid after done is closed
}

// stop stops the server and waits for its exit.
func (s *apiServer) stop() error {
	s.cancel()
	select {
	case <-s.done:
	case <-time.After(apiServerStop):
		return fmt.Errorf("controlplane: kube-apiserver is still running %v after the stop request", apiServerStop)
	}
	if s.err != nil {
		return fmt.Errorf("controlplane: kube-apiserver: %w", s.err)
	}
	return nil
}

// apiServerArgs returns the flags of the kube-apiserver.
func apiServerArgs(cfg config, creds credentials) []string {
	return append([]string{
		"--etcd-servers=http://" + cmp.Or(cfg.etcdEndpoint, loopback(cfg.etcdPort)),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(cfg.port),
		"--cert-dir=" + certDir(cfg),
		"--service-cluster-ip-range=10.0.0.0/24",
		// There is no cluster network that needs the server's address, and a killed
		// server could not remove it.
		"--endpoint-reconciler-type=none",
		"--token-auth-file=" + creds.tokenFile,
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + creds.serviceAccountKey,
		"--service-account-signing-key-file=" + creds.serviceAccountKey,
		// There are no service accounts, so this plugin would reject every Pod.
		"--disable-admission-plugins=ServiceAccount",
		"--event-ttl=" + cfg.eventTTL.String(),
		"--profiling=false",
		// Without a grace period the server waits a minute for clients to end their
		// watches.
		"--shutdown-watch-termination-grace-period=1s",
	}, cfg.apiserverArgs...)
}

// certDir returns the directory of the serving certificate. The API server creates
// apiserver.crt on its first start, with the certificate and its issuer's.
func certDir(cfg config) string { return filepath.Join(cfg.dataDir, "certs") }
