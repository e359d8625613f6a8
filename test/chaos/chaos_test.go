package chaos

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/faultproxy"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

const (
	emitters = 4

	// The short run in the integration tests is always the same.
	defaultSeed     = 7
	defaultDuration = 55 * time.Second

	// forbiddenLog matches what no emitter may log.
	forbiddenLog = "DATA RACE|panic:|panicked"

	// patience bounds the time after the faults, in addition to the end of emitters.
	patience = 5 * time.Minute
)

var (
	seedFlag     = flag.Uint64("chaos.seed", defaultSeed, "the seed of the schedule; 0 means a random seed")
	durationFlag = flag.Duration("chaos.duration", defaultDuration, "the duration of the faults")
	upgradeFlag  = flag.String("chaos.upgrade", "", "the program of another control plane, to which the server is upgraded when half of the duration is over")
	secondFlag   = flag.String("chaos.second", "", "the program of the second API server; if empty, that of the first one")
)

func TestMain(m *testing.M) {
	if variable, ok := os.LookupEnv(emitterVariable); ok {
		os.Exit(runEmitter(variable, os.Stdin, os.Stdout))
	}
	goleak.VerifyTestMain(m)
}

func TestChaos(t *testing.T) {
	apiserver.Program(t) // skips the test on a cluster
	if runtime.GOOS == "windows" {
		t.Skip("Windows cannot pause a process")
	}
	seed := *seedFlag
	for seed == 0 {
		seed = uint64(rand.Uint32())
	}
	plan := newSchedule(seed, emitters, *durationFlag)
	t.Logf("seed %d for %v; to repeat: make chaos CHAOS_SEED=%d CHAOS_DURATION=%v\n%v", seed, *durationFlag, seed, *durationFlag, plan)

	begin := time.Now()
	w := newWorld(t, seed)
	before, second := versionOf(t, w.faults.server), versionOf(t, w.faults.second)
	t.Logf("the API servers are %s, which has the etcd, and %s", before, second)
	w.run(plan)
	w.conclude()
	if *upgradeFlag != "" {
		after := versionOf(t, w.faults.server)
		require.NotEqual(t, before, after, "the server was not upgraded; it is not killed in the second half")
		t.Logf("the server was upgraded from %s to %s", before, after)
	}

	var accounts ledger
	for _, s := range w.supervisors {
		var all []*account
		for i, p := range s.processes {
			t.Logf("emitter %d, process %d, %v", s.config.Emitter, i, p.account)
			assert.Empty(t, p.account.check(), "emitter %d, process %d", s.config.Emitter, i)
			assert.NotRegexp(t, forbiddenLog, p.log.String())
			all = append(all, p.account)
		}
		accounts = append(accounts, all)
	}
	differences, twice := accounts.compare(w.found)
	t.Logf("seed %d, faults for %v, %v in total\n%v%s%d Events, %d changes, %d differences, %d regressions, %d occurrences counted twice as documented",
		seed, *durationFlag, time.Since(begin).Round(time.Second), w.summarizeFaults(), w.summarize(accounts),
		len(w.found), w.watch.changes, len(differences), len(w.watch.forbidden), twice)
	assert.NotEmpty(t, w.found)
	for _, d := range differences {
		t.Errorf("the Events do not match the accounts: %v", d)
	}
	for _, f := range w.watch.forbidden {
		t.Errorf("forbidden change of an Event: %s", f)
	}
}

type world struct {
	t           *testing.T
	dir         string // for diagnosis
	config      emitterConfig
	faults      *faults
	watch       *watch
	supervisors []*supervisor
	found       []eventsv1.Event // at the end
}

// newWorld starts everything except the emitters. The end of the test stops it.
func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	etcdPort := apiserver.FreePort(t)
	etcd := listen(t, fmt.Sprintf("127.0.0.1:%d", etcdPort))

	start := func(opts controlplane.Options, args ...string) *controlplane.Server {
		opts.Users = []controlplane.User{controllerUser}
		// A server that has just started denies everything until it knows its RBAC objects.
		opts.ExtraArgs = append(slices.Clone(args), "--etcd-endpoint="+etcd.Addr(), "--", "--authorization-mode=AlwaysAllow")
		return apiserver.Start(t, opts)
	}
	server := start(controlplane.Options{EtcdPort: etcdPort})
	second := start(controlplane.Options{Binary: *secondFlag, DataDir: filepath.Dir(server.Kubeconfig())},
		"--secondary", "--kubeconfig="+filepath.Join(t.TempDir(), "kubeconfig"))
	begin := time.Now()
	networks := []*faultproxy.Proxy{listen(t, server.Addr()), listen(t, second.Addr())}

	config := apiserver.ConfigOf(t, server)
	clients := apiserver.ClientsetFor(t, config)
	for _, name := range []string{namespace, deniedNamespace} {
		apiserver.CreateNamespace(t, clients, name)
	}

	w := &world{
		t:   t,
		dir: filepath.Dir(apiserver.Program(t)),
		config: emitterConfig{
			Seed: seed, Servers: []string{networks[0].Addr(), networks[1].Addr()}, Token: controllerUser.Token, CAData: config.CAData,
			Balancer: filepath.Join(t.TempDir(), "balancer"),
		},
	}
	w.faults = &faults{
		server: server, second: second, networks: networks, etcd: etcd,
		clients: clients, balancer: w.config.Balancer, log: t.Logf,
	}
	if *upgradeFlag != "" {
		w.faults.upgrade = func() {
			if time.Since(begin) > *durationFlag/2 {
				server.Upgrade(*upgradeFlag)
			}
		}
	}
	require.NoError(t, w.faults.setBalancer(""))
	require.NoError(t, w.faults.prepare(t.Context()))
	w.watch = startWatch(clients)
	t.Cleanup(func() {
		w.watch.stop()
		if t.Failed() { // all emitters have ended
			t.Logf("seed %d; reports, logs and Events are in %s", seed, w.keep())
		}
	})
	return w
}

// versionOf returns the version of a server.
func versionOf(t *testing.T, server *controlplane.Server) string {
	t.Helper()
	info, err := apiserver.ClientsetFor(t, apiserver.ConfigOf(t, server)).Discovery().ServerVersion()
	require.NoError(t, err)
	return info.GitVersion
}

func listen(t *testing.T, upstream string) *faultproxy.Proxy {
	t.Helper()
	proxy, err := faultproxy.Listen(t.Context(), upstream)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, proxy.Close()) })
	return proxy
}

func (w *world) run(plan schedule) {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	begin := time.Now()
	var running sync.WaitGroup
	start := func(run func(context.Context, time.Time, []step) error, steps []step) {
		running.Go(func() {
			if err := run(ctx, begin, steps); err != nil && ctx.Err() == nil {
				w.t.Error(err)
				cancel() // the others
			}
		})
	}
	for i, steps := range plan.emitters {
		s := newSupervisor(i, w.config, w.faults.note)
		w.supervisors = append(w.supervisors, s)
		w.t.Cleanup(func() {
			for _, p := range s.processes {
				p.abandon()
			}
		})
		start(s.run, steps)
	}
	for _, steps := range plan.faults {
		start(w.faults.run, steps)
	}
	running.Wait()
	require.False(w.t, w.t.Failed())
	w.t.Logf("the faults ended after %v", time.Since(begin).Round(time.Second))
}

func (w *world) conclude() {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience+2*stopTimeout)
	defer cancel()
	var ending sync.WaitGroup
	for _, s := range w.supervisors {
		ending.Go(func() { assert.NoError(w.t, s.conclude(ctx)) })
	}
	ending.Wait()
	require.False(w.t, w.t.Failed())
	require.EventuallyWithT(w.t, func(c *assert.CollectT) {
		list, err := w.faults.clients.EventsV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		require.NoError(c, err)
		w.found = list.Items
		require.Equal(c, versionsOf(list.Items), w.watch.versions())
	}, patience, tick)
	w.watch.stop()
	// An API server that is upgraded reports events of its own.
	w.found = slices.DeleteFunc(w.found, func(event eventsv1.Event) bool {
		return !strings.HasPrefix(event.ReportingController, controllerPrefix)
	})
}

// summarizeFaults returns a table of the kinds of faults: how many there were, how many
// requests were in flight during one, and how many of those failed. A process that is
// killed reports none.
func (w *world) summarizeFaults() string {
	all := make(map[kind][3]int)
	for _, trial := range w.faults.tried {
		n := all[trial.kind]
		n[0]++
		for i, s := range w.supervisors {
			if trial.emitter != allEmitters && trial.emitter != i {
				continue
			}
			for _, p := range s.processes {
				requests, failed := p.during(trial.from, trial.to)
				n[1] += requests
				n[2] += failed
			}
		}
		all[trial.kind] = n
	}
	text := fmt.Sprintf("  %-28s %8s %9s %8s\n", "fault", "times", "requests", "failed")
	for _, k := range slices.Sorted(maps.Keys(all)) {
		text += fmt.Sprintf("  %-28s %8d %9d %8d\n", k, all[k][0], all[k][1], all[k][2])
	}
	return text
}

func (w *world) summarize(accounts ledger) string {
	var all bounds
	totals := make(map[string]uint64)
	for _, accounts := range accounts {
		emitted := make(map[int]int64)
		for _, a := range accounts {
			totals["processes"]++
			totals["largest heap of a process in bytes"] = max(totals["largest heap of a process in bytes"], a.heap)
			for key, k := range a.keys {
				all.add(a.bounds(key))
				if k.emitted > 0 {
					emitted[key] += k.emitted
				}
			}
			for name, n := range a.stats {
				totals[name] += n
			}
		}
		totals["keys"] += uint64(len(emitted))
		for _, n := range emitted {
			totals["emitted"] += uint64(n)
		}
	}
	totals["unknown due to kills and timeouts"] = uint64(all.high - all.low)
	totals["may be counted twice as documented"] = uint64(all.twice)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(totals)) {
		fmt.Fprintf(&text, "  %-34s %d\n", name, totals[name])
	}
	return text.String()
}

// keep writes what explains a failure to a new directory.
func (w *world) keep() string {
	dir, err := os.MkdirTemp(w.dir, fmt.Sprintf("chaos-%d-", w.config.Seed))
	require.NoError(w.t, err)
	write := func(name string, content any) {
		data, err := json.Marshal(content)
		assert.NoError(w.t, err)
		assert.NoError(w.t, os.WriteFile(filepath.Join(dir, name+".json"), data, 0o600))
	}
	write("events", w.found)
	for _, s := range w.supervisors {
		for _, p := range s.processes {
			<-p.done
			write(p.config.name(), map[string]any{"reports": p.reports, "log": p.log.String()})
		}
	}
	return dir
}
