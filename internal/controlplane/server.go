// Package controlplane builds, starts and stops a real Kubernetes API server and
// its etcd, for the demo and the tests. The program is in test/controlplane.
//
// The server runs in a separate process, so that a test can pause it, kill it and
// restart it with the same data and address. It never outlives the process that
// started it, even if that process is killed.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// errNotRunning is the error of methods that need a running server.
var errNotRunning = errors.New("controlplane: the server is not running")

// Options configures [Start]. Only Binary is required.
type Options struct {
	// Binary is the path of the program, which [Build] returns.
	Binary string

	// DataDir is the directory of etcd's data, the certificate, the tokens and
	// the kubeconfig. A server that finds the data of an earlier one keeps its
	// objects. If empty, Start creates a directory next to Binary, and
	// [Server.Stop] removes it.
	DataDir string

	// Port and EtcdPort are the ports on 127.0.0.1. If zero, Start selects free ports.
	Port, EtcdPort int

	// EventTTL is how long the server keeps an Event after its last write. If
	// zero, it is one hour, the default of kube-apiserver.
	EventTTL time.Duration

	// Users can authenticate, like the administrator. They have no permissions
	// until a test creates RBAC objects for them.
	Users []User

	// ExtraArgs are additional flags of the program. The program passes those
	// after an element "--" to kube-apiserver.
	ExtraArgs []string

	// Log receives the server's log. Errors contain the end of the log even if
	// Log is nil.
	Log io.Writer
}

// User is a user that authenticates with a bearer token.
type User struct {
	Name   string   // must not contain a colon
	Token  string   // must not contain a colon
	Groups []string // in addition to system:authenticated
}

// args returns the arguments of the program for data in dir. If dispose is true,
// the program removes dir when its parent exits first.
func (o Options) args(dir string, dispose bool) []string {
	args := []string{"--lifeline", "--data-dir=" + dir, fmt.Sprintf("--port=%d", o.Port), fmt.Sprintf("--etcd-port=%d", o.EtcdPort)}
	if dispose {
		args = append(args, "--remove-orphaned-data")
	}
	if o.EventTTL != 0 {
		args = append(args, "--event-ttl="+o.EventTTL.String())
	}
	for _, u := range o.Users {
		args = append(args, "--user="+strings.TrimSuffix(u.Name+":"+u.Token+":"+strings.Join(u.Groups, ","), ":"))
	}
	return append(args, o.ExtraArgs...)
}

// Server is an API server with its etcd, in a separate process. Its methods are
// safe for concurrent use, but wait for each other.
type Server struct {
	opts    Options
	dataDir string
	dispose bool // Stop removes dataDir

	mu         sync.Mutex
	process    *process // nil if stopped or killed
	kubeconfig string
}

// Start starts a server and waits until it is ready, which takes a few seconds.
// The caller must call [Server.Stop]. Cancelling ctx aborts the wait, but does not
// stop a server that is ready. ctx needs no deadline: the server exits if it is not
// ready after three minutes. If the server exits before it is ready, Start returns
// at once. The error contains the end of the server's log.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Binary == "" {
		return nil, errors.New("controlplane: Options.Binary is required; Build returns it")
	}
	for _, port := range []*int{&opts.Port, &opts.EtcdPort} { // the same after a restart
		if *port == 0 {
			var err error
			if *port, err = FreePort(ctx); err != nil {
				return nil, err
			}
		}
	}
	s := &Server{opts: opts, dataDir: opts.DataDir}
	if s.dataDir == "" {
		// Not in the system's temporary directory, so that nothing is left outside
		// the clone, whatever goes wrong.
		dir, err := os.MkdirTemp(filepath.Dir(opts.Binary), "data-")
		if err != nil {
			return nil, fmt.Errorf("controlplane: data directory: %w", err)
		}
		s.dataDir, s.dispose = dir, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.removeData())
	}
	return s, nil
}

// start runs the program and waits until it is ready. The caller holds mu.
func (s *Server) start(ctx context.Context) error {
	p, err := startProcess(s.opts.Binary, s.opts.args(s.dataDir, s.dispose), s.opts.Log)
	if err != nil {
		return fmt.Errorf("controlplane: start: %w", err)
	}
	line, err := p.waitReady(ctx)
	var ok bool
	if _, s.kubeconfig, ok = strings.Cut(line, " kubeconfig="); err == nil && !ok {
		err = fmt.Errorf("got %q, want \"ready https://HOST:PORT kubeconfig=FILE\"", line)
	}
	if err != nil {
		_ = p.kill() // err says more
		return fmt.Errorf("controlplane: start: %w", err)
	}
	s.process = p
	return nil
}

// Restart stops the server if it is running, and starts it with the same data, address
// and kubeconfig. It waits until the server is ready, like [Start]. After an
// error the server is not running.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stop(); err != nil {
		return err
	}
	return s.start(ctx)
}

// Upgrade makes [Server.Restart] start another program from now on, which must understand
// the data of this one.
func (s *Server) Upgrade(binary string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Binary = binary
}

// Stop stops the server and waits for its exit, but kills it after half a minute.
// It removes the data unless [Options].DataDir is set. Stop returns an error if it
// has to kill the server, or if the server exits with a code other than 0. It
// returns nil if the server is not running.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.stop(), s.removeData())
}

// stop stops the process if it is running. The caller holds mu.
func (s *Server) stop() error {
	if s.process == nil {
		return nil
	}
	err := s.process.stop()
	s.process = nil
	if err != nil {
		return fmt.Errorf("controlplane: stop: %w", err)
	}
	return nil
}

func (s *Server) removeData() error {
	if !s.dispose {
		return nil
	}
	return os.RemoveAll(s.dataDir)
}

// Kill kills the server (SIGKILL) and waits for its exit. It keeps the data, so that
// [Server.Restart] can continue with them.
func (s *Server) Kill() error {
	err := s.signal("kill", func(p *process) error { return p.kill() })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = nil
	return err
}

// Pause suspends the server (SIGSTOP) until [Server.Resume]. Connections to a paused
// server succeed, but requests hang. On Windows, Pause returns
// [errors.ErrUnsupported].
func (s *Server) Pause() error { return s.signal("pause", pause) }

// Resume resumes a paused server.
func (s *Server) Resume() error { return s.signal("resume", resume) }

func (s *Server) signal(action string, send func(*process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return errNotRunning
	}
	if err := send(s.process); err != nil {
		return fmt.Errorf("controlplane: %s: %w", action, err)
	}
	return nil
}

// Kubeconfig returns the path of a kubeconfig for the server. Its current context is
// that of the administrator; there is another one for each of [Options].Users. The
// path does not change on a restart.
func (s *Server) Kubeconfig() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kubeconfig
}

// Addr returns the host and port on which the server listens, with TLS.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.opts.Port) }
