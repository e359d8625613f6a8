package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/casestudy/recorders"
)

// auditPolicy logs the requests for Events.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources: [{group: "", resources: [events]}, {group: events.k8s.io, resources: [events]}]
- level: None
`

var schedulerUser = controlplane.User{Name: "kube-scheduler", Token: "kube-scheduler-token", Groups: []string{"system:masters"}}

// cluster is an API server with a scheduler.
type cluster struct {
	dir     string
	server  *controlplane.Server
	clients kubernetes.Interface
	program *exec.Cmd
	exited  chan error
}

// startCluster starts an API server. The caller must stop it.
func startCluster(ctx context.Context, apiserver, dir string) (c *cluster, err error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o644); err != nil {
		return nil, err
	}
	c = &cluster{dir: dir, exited: make(chan error, 1)}
	c.server, err = controlplane.Start(ctx, controlplane.Options{
		Binary: apiserver, DataDir: filepath.Join(dir, "data"), Users: []controlplane.User{schedulerUser},
		ExtraArgs: []string{
			"--", "--audit-policy-file=" + policy, "--audit-log-path=" + c.auditLog(),
			// The second plugin taints new nodes until a controller, which does not run, finds
			// them ready.
			"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
		},
	})
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.server.Kubeconfig())
	if err == nil {
		config.QPS = -1
		c.clients, err = kubernetes.NewForConfig(config)
	}
	if err != nil {
		return nil, errors.Join(err, c.server.Stop())
	}
	return c, nil
}

func (c *cluster) auditLog() string { return filepath.Join(c.dir, "audit.log") }
func (c *cluster) counts() string   { return filepath.Join(c.dir, "counts.json") }

// startScheduler starts the scheduler, and waits until it has read all objects. Only stop ends
// the process, not a context.
func (c *cluster) startScheduler(ctx context.Context, binary, recorder string) error {
	config, err := clientcmd.LoadFromFile(c.server.Kubeconfig())
	if err != nil {
		return err
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{config.Contexts[config.CurrentContext].AuthInfo: {Token: schedulerUser.Token}}
	kubeconfig := filepath.Join(c.dir, "scheduler.kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return err
	}
	study := filepath.Join(c.dir, "recorder.json")
	content, err := json.Marshal(recorders.Config{Recorder: recorder, Counts: c.counts()})
	if err == nil {
		err = os.WriteFile(study, content, 0o644)
	}
	if err != nil {
		return err
	}
	port, err := controlplane.FreePort(ctx)
	if err != nil {
		return err
	}
	c.program = exec.CommandContext(context.Background(), binary,
		// With leader election, the scheduler exits without shutting down its recorder.
		"--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port), "--authorization-always-allow-paths=/readyz")
	c.program.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "CASESTUDY_CONFIG="+study)
	c.program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	output, err := os.Create(filepath.Join(c.dir, "scheduler.log"))
	if err != nil {
		return err
	}
	defer output.Close()
	c.program.Stdout, c.program.Stderr = output, output
	if err := c.program.Start(); err != nil {
		return err
	}
	go func() { c.exited <- c.program.Wait() }()
	if err := c.waitScheduler(ctx, "https://127.0.0.1:"+strconv.Itoa(port)+"/readyz"); err != nil {
		_ = c.program.Process.Kill() // it may have exited
		return fmt.Errorf("kube-scheduler is not ready: %w", err)
	}
	return nil
}

func (c *cluster) waitScheduler(ctx context.Context, url string) error {
	// The scheduler makes a certificate when it starts.
	client, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := c.running(); err != nil {
			return false, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

// running returns an error if the scheduler has exited.
func (c *cluster) running() error {
	select {
	case err := <-c.exited:
		c.exited <- err
		return fmt.Errorf("kube-scheduler exited: %w", cmp.Or(err, errors.New("exit status 0")))
	default:
		return nil
	}
}

// cpu returns the CPU time of the scheduler so far, in seconds.
func (c *cluster) cpu() (float64, error) {
	process, err := procfs.NewProc(c.program.Process.Pid)
	if err != nil {
		return 0, err
	}
	stat, err := process.Stat()
	return stat.CPUTime(), err
}

// stop sends SIGTERM to the scheduler, and returns how long it takes to exit, and its CPU
// time in seconds.
func (c *cluster) stop() (exit, cpu float64, err error) {
	began := time.Now()
	if err := c.program.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, 0, err
	}
	select {
	case err = <-c.exited:
	case <-time.After(time.Minute):
		err = errors.Join(errors.New("kube-scheduler is still running a minute after SIGTERM"), c.program.Process.Kill(), <-c.exited)
	}
	state := c.program.ProcessState
	return time.Since(began).Seconds(), (state.UserTime() + state.SystemTime()).Seconds(), err
}
