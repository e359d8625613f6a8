package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// errNotRunning is returned for what can be done to a running server only.
var errNotRunning = errors.New("controlplane: the server is not running")

// Server is an API server with its etcd, in a process of its own. Its methods
// may be called from several goroutines; those that change it wait for each
// other.
type Server struct {
	opts    Options
	dataDir string
	dispose bool // dataDir is ours and goes when the server goes

	mu         sync.Mutex
	process    *process // nil: stopped or killed
	addr       string
	kubeconfig string
}

// Start starts a server and returns when it is ready, which takes a few
// seconds. ctx bounds that wait and not the life of the server: the caller has
// to Stop it. If the server ends before it is ready, Start returns at once, with
// the end of the server's log in the error.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Binary == "" {
		return nil, errors.New("controlplane: Options.Binary is empty; Build returns it")
	}
	s := &Server{opts: opts, dataDir: opts.DataDir}
	if s.dataDir == "" {
		// Beside the program and not in the system's temporary directory:
		// whatever goes wrong, nothing stays behind outside the clone.
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
		_ = p.kill() // says no more than err
		return fmt.Errorf("controlplane: start: %w", err)
	}
	s.process = p
	return nil
}

// Restart starts the server again, on the same data and ports and with the same
// kubeconfig, and returns when it is ready; ctx bounds that wait. A server that
// runs is stopped first. After an error the server does not run.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stop(); err != nil {
		return err
	}
	return s.start(ctx)
}

// Stop stops the server and waits for it, and removes its data if it was not
// told where to keep them. A server that has not ended after half a minute is
// killed. The error says so, or that the server did not end with exit code 0,
// or had ended before. Stopping a server that does not run is no error.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.stop(), s.removeData())
}

// stop stops the process if there is one. The caller holds mu.
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

// Kill kills the server (SIGKILL) and waits for its end. Its data stay, until
// Stop: Restart goes on with them.
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

// Pause stops the server's execution (SIGSTOP): it accepts connections and
// answers nothing, until Resume. On Windows the error is errors.ErrUnsupported.
func (s *Server) Pause() error { return s.signal("pause", pause) }

// Resume undoes Pause.
func (s *Server) Resume() error { return s.signal("resume", resume) }

func (s *Server) signal(what string, send func(*os.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return errNotRunning
	}
	if err := send(s.process.cmd.Process); err != nil {
		return fmt.Errorf("controlplane: %s: %w", what, err)
	}
	return nil
}

// Kubeconfig returns the path of a kubeconfig for the server, whose current
// context is an administrator and which has a context for each of
// Options.Users. It is the same file after a restart.
func (s *Server) Kubeconfig() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kubeconfig
}

// Addr returns the host and port that the server listens on, with TLS.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// PID returns the number of the server's process, or 0 when it does not run.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.cmd.Process.Pid
}
