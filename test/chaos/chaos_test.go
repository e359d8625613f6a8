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
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/faultproxy"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

const (
	emitters  = 4
	namespace = "chaos"

	// The short run in the integration tests is always the same.
	defaultSeed     = 1
	defaultDuration = 55 * time.Second

	// forbiddenLog matches what no emitter may log.
	forbiddenLog = "DATA RACE|panic:|panicked"

	// patience bounds the time after the faults, in addition to the end of emitters.
	patience = 5 * time.Minute
)

var (
	seedFlag     = flag.Uint64("chaos.seed", defaultSeed, "the seed of the schedule; 0 means a random seed")
	durationFlag = flag.Duration("chaos.duration", defaultDuration, "the duration of the faults")
	pushBackFlag = flag.Bool("chaos.pushback", false, "whether the server rejects requests (429) at times")
	metricsFlag  = flag.String("chaos.metrics", "", "a file for the metrics of all emitters: OpenMetrics, compressed by gzip")
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
	if *pushBackFlag {
		plan = plan.withPushBacks(seed, *durationFlag)
	}
	t.Logf("seed %d for %v; to repeat: make chaos CHAOS_SEED=%d CHAOS_DURATION=%v\n%v", seed, *durationFlag, seed, *durationFlag, plan)

	begin := time.Now()
	w := newWorld(t, seed)
	w.run(plan)
	found := w.conclude()
	if *metricsFlag != "" {
		assert.NoError(t, record(*metricsFlag, w.supervisors))
	}

	var accounts ledger
	for _, s := range w.supervisors {
		accounts = append(accounts, s.accounts())
		for i, p := range s.processes {
			t.Logf("emitter %d, process %d, %v", s.config.Emitter, i, p.account)
			assert.Empty(t, p.account.check(), "emitter %d, process %d", s.config.Emitter, i)
			assert.NotRegexp(t, forbiddenLog, p.log.String())
		}
	}
	differences := accounts.compare(found)
	t.Logf("seed %d, faults for %v, %v in total\n%s%d Events, %d changes, %d differences, %d regressions",
		seed, *durationFlag, time.Since(begin).Round(time.Second), w.summarize(accounts),
		len(found), w.watch.changes, len(differences), len(w.watch.forbidden))
	assert.NotEmpty(t, found)
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
	watching    sync.WaitGroup
	stopWatch   context.CancelFunc
	supervisors []*supervisor
	found       []eventsv1.Event // at the end
}

// newWorld starts everything except the emitters. The end of the test stops it.
func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	etcdPort := apiserver.FreePort(t)
	etcd := listen(t, fmt.Sprintf("127.0.0.1:%d", etcdPort))

	server := apiserver.Start(t, controlplane.Options{
		EtcdPort: etcdPort, ExtraArgs: []string{"--etcd-endpoint=" + etcd.Addr()},
		Users: []controlplane.User{controllerUser},
	})
	network := listen(t, server.Addr())

	clients := apiserver.ClientsetFor(t, apiserver.ConfigOf(t, server))
	_, err := clients.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)

	w := &world{
		t:   t,
		dir: filepath.Dir(apiserver.Program(t)),
		config: emitterConfig{
			Seed: seed, Kubeconfig: server.Kubeconfig(), Host: "https://" + network.Addr(), Namespace: namespace,
			Metrics: *metricsFlag != "",
		},
		faults: &faults{server: server, network: network, etcd: etcd, clients: clients, log: t.Logf},
	}
	if *pushBackFlag {
		w.config.Token = controllerUser.Token
		require.NoError(t, w.faults.preparePushBack(t.Context()))
	}
	watching, stopWatch := context.WithCancel(context.WithoutCancel(t.Context()))
	w.stopWatch = stopWatch
	w.watch = startWatch(watching, clients, namespace, &w.watching)
	t.Cleanup(func() {
		w.endWatch()
		if t.Failed() { // all emitters have ended
			t.Logf("seed %d; reports, logs and Events are in %s", seed, w.keep())
		}
	})
	return w
}

func (w *world) endWatch() {
	w.stopWatch()
	w.watching.Wait()
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
		s := newSupervisor(i, w.config)
		w.supervisors = append(w.supervisors, s)
		w.t.Cleanup(func() {
			if len(s.processes) > 0 {
				s.latest().abandon()
			}
		})
		start(s.run, steps)
	}
	start(w.faults.run, plan.server)
	start(w.faults.run, plan.network)
	start(w.faults.run, plan.pushBack)
	running.Wait()
	if w.t.Failed() {
		w.t.FailNow()
	}
	w.t.Logf("the faults ended after %v", time.Since(begin).Round(time.Second))
}

func (w *world) conclude() []eventsv1.Event {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience+2*stopTimeout)
	defer cancel()
	var ending sync.WaitGroup
	for _, s := range w.supervisors {
		ending.Go(func() { assert.NoError(w.t, s.conclude(ctx)) })
	}
	ending.Wait()
	if w.t.Failed() {
		w.t.FailNow()
	}
	for {
		list, err := w.faults.clients.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err == nil {
			err = w.watch.checkUpToDate(list.Items)
		}
		if err == nil {
			w.found = list.Items
			w.endWatch()
			return list.Items
		}
		require.True(w.t, until(ctx, time.Now().Add(tick)), "%v", err)
	}
}

func (w *world) summarize(accounts ledger) string {
	var text strings.Builder
	row := func(name string, values ...any) {
		fmt.Fprintf(&text, "  %-34s %s", name, fmt.Sprintln(values...))
	}
	var all bounds
	totals := make(map[string]uint64)
	keys, processes := make(map[[2]int]bool), 0
	for i, accounts := range accounts {
		processes += len(accounts)
		for _, a := range accounts {
			for key, k := range a.keys {
				all.add(a.bounds(key))
				if k.emitted > 0 {
					keys[[2]int{i, key}] = true
				}
				totals["emitted"] += uint64(k.emitted)
			}
			for name, n := range a.stats {
				totals[name] += n
			}
		}
	}
	row("emitters, processes, keys", len(accounts), processes, len(keys))
	network := w.faults.network.Stats()
	row("connections of emitters, reset", network.Accepted, network.Reset)
	for _, name := range slices.Sorted(maps.Keys(totals)) {
		row(name, totals[name])
	}
	row("unknown due to kills and timeouts", all.high-all.low)
	return text.String()
}

func (w *world) keep() string {
	dir, err := os.MkdirTemp(w.dir, fmt.Sprintf("chaos-%d-", w.config.Seed))
	if !assert.NoError(w.t, err) {
		return ""
	}
	write := func(name string, content any) {
		data, err := json.Marshal(content)
		assert.NoError(w.t, err)
		assert.NoError(w.t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	write("events.json", w.found)
	for _, s := range w.supervisors {
		for i, p := range s.processes {
			<-p.done
			name := fmt.Sprintf("emitter-%d-process-%d", s.config.Emitter, i)
			write(name+".json", p.reports)
			assert.NoError(w.t, os.WriteFile(filepath.Join(dir, name+".log"), p.log.Bytes(), 0o600))
		}
	}
	return dir
}
