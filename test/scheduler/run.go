package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/eventseries/eventseries/internal/controlplane"
)

const (
	// A batch of Pods that fit begins after firstBatch, and another one every
	// batchInterval after it.
	firstBatch    = 10 * time.Second
	batchInterval = time.Minute
	batchPods     = 500

	readyTimeout = 2 * time.Minute
	pollInterval = 100 * time.Millisecond
	// exitTimeout bounds the exit of the scheduler after SIGTERM.
	exitTimeout = time.Minute
)

// measure runs a case with a recorder on a fresh API server.
func measure(ctx context.Context, cfg config, c testCase, recorder string) (result Result, err error) {
	result = Result{Case: c.Name, Recorder: recorder}
	dir, err := os.MkdirTemp("", "eventseries-scheduler-")
	if err != nil {
		return result, fmt.Errorf("scheduler: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	policy, log := filepath.Join(dir, "policy.json"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return result, fmt.Errorf("scheduler: %w", err)
	}
	server, err := controlplane.Start(ctx, controlplane.Options{
		Binary:  cfg.controlplane,
		DataDir: filepath.Join(dir, "data"),
		ExtraArgs: []string{
			"--", "--audit-policy-file=" + policy, "--audit-log-path=" + log, "--audit-log-maxsize=1000",
			// The second plugin taints new nodes until a controller, which does not run,
			// finds them ready.
			"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
		},
	})
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	restConfig, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig())
	if err != nil {
		return result, fmt.Errorf("scheduler: kubeconfig: %w", err)
	}
	restConfig.QPS = -1
	clients, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return result, fmt.Errorf("scheduler: client: %w", err)
	}
	cl := cluster{clients}
	if err := cl.fill(ctx, c.Pods); err != nil {
		return result, err
	}
	if err := observe(ctx, cfg, c, cl, server.Kubeconfig(), filepath.Join(dir, "report.json"), &result); err != nil {
		return result, err
	}
	audit, err := os.Open(log)
	if err != nil {
		return result, fmt.Errorf("scheduler: audit log: %w", err)
	}
	defer func() { err = errors.Join(err, audit.Close()) }()
	result.Requests, result.Failed, result.OtherRequests, err = countRequests(audit)
	return result, err
}

// observe runs the scheduler for the duration of the case.
func observe(ctx context.Context, cfg config, c testCase, cl cluster, kubeconfig, report string, result *Result) error {
	s, err := startScheduler(ctx, cfg.scheduler, kubeconfig, report, result.Recorder)
	if err != nil {
		return err
	}
	defer s.kill()
	if err := s.waitReady(ctx); err != nil {
		return err
	}
	before, err := s.cpu(ctx)
	if err != nil {
		return err
	}

	running, cancel := context.WithTimeout(ctx, c.Duration)
	defer cancel()
	changes := make(chan error, 1)
	go func() { changes <- cl.change(running, c.SameMessage) }()
	err = cl.bindAll(running, result)
	if err != nil {
		cancel()
	}
	<-running.Done()
	if err := errors.Join(err, <-changes, ctx.Err()); err != nil {
		return err
	}

	if result.Running, _, err = cl.tallies(ctx); err != nil {
		return err
	}
	start := time.Now()
	total, err := s.stop()
	if err != nil {
		return err
	}
	result.Exit = time.Since(start).Seconds()
	result.CPU = total.Seconds() - before.Seconds()
	if result.Stopped, result.OtherEvents, err = cl.tallies(ctx); err != nil {
		return err
	}
	emitted := make(map[string]int)
	content, err := os.ReadFile(report)
	if err == nil {
		err = json.Unmarshal(content, &emitted)
	}
	if err != nil {
		return fmt.Errorf("scheduler: report: %w", err)
	}
	for name, n := range emitted {
		if strings.HasPrefix(name, stuckPrefix) {
			result.Occurrences += n
		} else {
			result.OtherOccurrences += n
		}
	}
	return nil
}

// bindAll creates batches of Pods until ctx ends.
func (c cluster) bindAll(ctx context.Context, result *Result) error {
	next := time.NewTimer(firstBatch)
	defer next.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
		next.Reset(batchInterval)
		batch, err := c.bind(ctx, i, batchPods)
		if err != nil {
			return err
		}
		result.Batches = append(result.Batches, batch)
	}
}

// scheduler is a process of ./kube-scheduler.
type scheduler struct {
	cmd    *exec.Cmd
	log    bytes.Buffer // valid after the exit
	exited chan struct{}
	err    error // valid after the exit
	url    string
	client *http.Client
}

func startScheduler(ctx context.Context, program, kubeconfig, report, recorder string) (*scheduler, error) {
	port, err := controlplane.FreePort(ctx)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	args := []string{
		"--recorder=" + recorder, "--report=" + report, "--kubeconfig=" + kubeconfig,
		// With leader election, the scheduler exits without shutting down its recorder.
		"--leader-elect=false",
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port),
		"--authorization-always-allow-paths=/readyz,/metrics",
	}
	s := &scheduler{
		cmd:    exec.CommandContext(ctx, program, args...),
		exited: make(chan struct{}),
		url:    fmt.Sprintf("https://127.0.0.1:%d", port),
	}
	s.cmd.Stderr = &s.log
	// The scheduler makes a certificate when it starts.
	if s.client, err = rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}}); err != nil {
		return nil, fmt.Errorf("scheduler: client: %w", err)
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("scheduler: start: %w", err)
	}
	go func() {
		defer close(s.exited)
		s.err = s.cmd.Wait()
	}()
	return s, nil
}

// waitReady waits until the scheduler has read all objects.
func (s *scheduler) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		_, err := s.get(ctx, "/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return s.failure()
		case <-ctx.Done():
			return fmt.Errorf("scheduler: not ready: %w", err)
		case <-time.After(pollInterval):
		}
	}
}

func (s *scheduler) get(ctx context.Context, path string) (*bytes.Buffer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	response, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		return nil, fmt.Errorf("scheduler: %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("scheduler: %s: %s: %s", path, response.Status, body.Bytes())
	}
	return &body, nil
}

// cpu returns the CPU time of the process so far.
func (s *scheduler) cpu(ctx context.Context) (time.Duration, error) {
	body, err := s.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(body)
	if err != nil {
		return 0, fmt.Errorf("scheduler: metrics: %w", err)
	}
	const name = "process_cpu_seconds_total"
	metrics := families[name].GetMetric()
	if len(metrics) != 1 {
		return 0, fmt.Errorf("scheduler: %d metrics %s: this needs Linux", len(metrics), name)
	}
	return time.Duration(metrics[0].GetCounter().GetValue() * float64(time.Second)), nil
}

// stop stops the scheduler, and returns the CPU time of the process.
func (s *scheduler) stop() (time.Duration, error) {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, fmt.Errorf("scheduler: stop: %w", err)
	}
	select {
	case <-s.exited:
	case <-time.After(exitTimeout):
		return 0, fmt.Errorf("scheduler: still running %v after SIGTERM", exitTimeout)
	}
	if s.err != nil {
		return 0, s.failure()
	}
	return s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime(), nil
}

// failure returns an error with the end of the log. The process has exited.
func (s *scheduler) failure() error {
	lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
	return fmt.Errorf("scheduler: exited: %w\n%s", s.err, strings.Join(lines[max(0, len(lines)-20):], "\n"))
}

// kill kills the process if it is running.
func (s *scheduler) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
	s.client.CloseIdleConnections()
}
