package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
)

// errNotRunning is the error of methods that need a running server.
var errNotRunning = errors.New("controlplane: the server is not running")

// Server is an API server with its etcd, in a separate process. Its methods are
// safe for concurrent use, but wait for each other.
type Server struct {
	opts    Options
	dataDir string
	dispose bool // Stop removes dataDir

	mu         sync.Mutex
	process    *process // nil if stopped or killed
	addr       netip.AddrPort
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
	if err == nil {
		s.addr, s.kubeconfig, err = parseReady(line)
	}
	if err != nil {
		_ = p.kill() // err says more
		return fmt.Errorf("controlplane: start: %w", err)
	}
	s.process = p
	s.opts.Port = int(s.addr.Port()) // for a restart
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
	p := s.process
	if p == nil {
		return nil
	}
	s.process = nil
	if err := p.stop(); err != nil {
		return fmt.Errorf("controlplane: stop: %w", err)
	}
	return nil
}

func (s *Server) removeData() error {
	if !s.dispose {
		return nil
	}
	if err := os.RemoveAll(s.dataDir); err != nil {
		return fmt.Errorf("controlplane: remove data: %w", err)
	}
	return nil
}

// Kill kills the server (SIGKILL) and waits for its exit. It keeps the data, so that
// [Server.Restart] can continue with them.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.process
	if p == nil {
		return errNotRunning
	}
	s.process = nil
	if err := p.kill(); err != nil {
		return fmt.Errorf("controlplane: kill: %w", err)
	}
	return nil
}

// Pause suspends the server (SIGSTOP) until [Server.Resume]. Connections to a paused
// server succeed, but requests hang. On Windows, Pause returns
// [errors.ErrUnsupported].
func (s *Server) Pause() error { return s.signal("pause", pause) }

// Resume resumes a paused server.
func (s *Server) Resume() error { return s.signal("resume", resume) }

func (s *Server) signal(action string, send func(*os.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return errNotRunning
	}
	if err := send(s.process.cmd.Process); err != nil {
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
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr.String()
}

// PID returns the server's process ID, or 0 if the server is not running.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.cmd.Process.Pid
}
