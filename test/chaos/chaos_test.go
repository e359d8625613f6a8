package chaos

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/faultproxy"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

const (
	// emitters is how many processes emit at a time.
	emitters = 4
	// namespace is where all of them emit.
	namespace = "chaos"

	// The short run that is a test like any other is always the same.
	defaultSeed     = 1
	defaultDuration = 55 * time.Second

	// patience bounds what comes after the faults, beside the ends of emitters.
	patience = 5 * time.Minute
)

var (
	seedFlag     = flag.Uint64("chaos.seed", defaultSeed, "the seed of the schedule; 0: any")
	durationFlag = flag.Duration("chaos.duration", defaultDuration, "how long there are faults")
	pushBackFlag = flag.Bool("chaos.pushback", false, "have the server push back (429) now and then")
	metricsFlag  = flag.String("chaos.metrics", "", "a file for the metrics of all emitters over the run: OpenMetrics, compressed by gzip")
)

// TestChaos is what this package is for; see its documentation.
func TestChaos(t *testing.T) {
	apiserver.Program(t) // skips the test on a cluster
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be paused on Windows")
	}
	seed := *seedFlag
	for seed == 0 {
		seed = uint64(rand.Uint32())
	}
	plan := newSchedule(seed, emitters, *durationFlag)
	if *pushBackFlag {
		plan = plan.withPushBacks(seed, *durationFlag)
	}
	// Where it is shown at once, whoever waits wants to know what for.
	t.Logf("seed %d for %v; again with: make chaos CHAOS_SEED=%d CHAOS_DURATION=%v\n%v", seed, *durationFlag, seed, *durationFlag, plan)

	begin := time.Now()
	w := newWorld(t, seed)
	w.run(plan)
	found := w.conclude()
	if *metricsFlag != "" {
		assert.NoError(t, record(*metricsFlag, w.emissions))
	}

	result := summary{
		seed: seed, faults: *durationFlag, elapsed: time.Since(begin), schedule: plan,
		lives: make(map[kind]int), events: len(found),
	}
	for _, e := range w.emissions {
		result.accounts = append(result.accounts, e.accounts())
		for k, n := range e.kinds {
			result.lives[k] += n
		}
		for i, l := range e.lives {
			t.Logf("emitter %d, life %d, %v", e.number, i, l.account)
			assert.Empty(t, l.account.check(), "emitter %d, life %d", e.number, i)
			assert.NoError(t, l.broken())
		}
	}
	differences := result.accounts.compare(found)
	changes, regressions := w.watch.result()
	result.changes, result.differences, result.regressions = changes, len(differences), len(regressions)
	network := w.faults.network.Stats()
	result.connections, result.resets = network.Accepted, network.Reset
	t.Logf("the numbers:\n%v", &result)
	assert.NotEmpty(t, found)
	for _, d := range differences {
		t.Errorf("not accounted for: %v", d)
	}
	for _, r := range regressions {
		t.Errorf("an Event went back: %s", r)
	}
}

// world is a server, a network and those who emit.
type world struct {
	t         *testing.T
	dir       string // for what is to be kept
	config    emitterConfig
	clients   *kubernetes.Clientset // not through the proxy
	faults    *faults
	pushBacks *pushBacks // nil if there are none
	watch     *watch
	emissions []*emission
	found     []eventsv1.Event // in the end
}

// newWorld starts all but the emitters. It ends with the test.
func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	etcdPort := freePort(t)
	etcd, err := faultproxy.Listen(t.Context(), net.JoinHostPort("127.0.0.1", strconv.Itoa(etcdPort)))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, etcd.Close()) })

	server := apiserver.Start(t, controlplane.Options{
		EtcdPort: etcdPort, ExtraArgs: []string{"--etcd-endpoint=" + etcd.Addr()},
		Users: []controlplane.User{controllerUser},
	})
	network, err := faultproxy.Listen(t.Context(), server.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, network.Close()) })

	clients := apiserver.ClientsetFor(t, apiserver.ConfigOf(t, server))
	_, err = clients.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)

	w := &world{
		t:   t,
		dir: filepath.Dir(apiserver.Program(t)),
		config: emitterConfig{
			Seed: seed, Kubeconfig: server.Kubeconfig(), Host: "https://" + network.Addr(), Namespace: namespace,
			Metrics: *metricsFlag != "",
		},
		clients: clients,
		faults:  &faults{server: server, network: network, etcd: etcd, log: t.Logf},
	}
	if *pushBackFlag {
		w.config.Token = controllerUser.Token
		w.pushBacks = &pushBacks{clients: clients}
		require.NoError(t, w.pushBacks.prepare(t.Context()))
	}
	watching, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var watcher sync.WaitGroup
	w.watch = startWatch(watching, clients, namespace, &watcher)
	t.Cleanup(func() {
		stop()
		watcher.Wait()
		if t.Failed() { // all emitters have ended by now, one way or another
			t.Logf("seed %d; all that is known is in %s", seed, w.keep())
		}
	})
	return w
}

// run does what the schedule says, all of it.
func (w *world) run(plan schedule) {
	// What goes wrong with one ends all.
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	begin := time.Now()
	var running sync.WaitGroup
	goOn := func(f func() error) {
		running.Go(func() {
			if err := f(); err != nil && ctx.Err() == nil {
				w.t.Error(err)
				cancel()
			}
		})
	}
	for i, steps := range plan.emitters {
		e := newEmission(i, w.config)
		w.emissions = append(w.emissions, e)
		w.t.Cleanup(e.abandon)
		goOn(func() error { return e.run(ctx, begin, steps) })
	}
	goOn(func() error { return w.faults.runServer(ctx, begin, plan.server) })
	goOn(func() error { return w.faults.runNetwork(ctx, begin, plan.network) })
	if w.pushBacks != nil {
		goOn(func() error { return w.pushBacks.run(ctx, begin, plan.pushBack) })
	}
	running.Wait()
	if w.t.Failed() {
		w.t.FailNow()
	}
	w.t.Logf("the faults are over after %v", time.Since(begin).Round(time.Second))
}

// conclude has all emitters end well, and returns what is on the server then.
func (w *world) conclude() []eventsv1.Event {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience+2*lifeEnd)
	defer cancel()
	var ending sync.WaitGroup
	for _, e := range w.emissions {
		ending.Go(func() { assert.NoError(w.t, e.conclude(ctx)) })
	}
	ending.Wait()
	if w.t.Failed() {
		w.t.FailNow()
	}
	for {
		list, err := w.clients.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err == nil {
			err = w.watch.upToDate(list.Items)
		}
		if err == nil {
			w.found = list.Items
			return list.Items
		}
		require.True(w.t, until(ctx, time.Now().Add(tick)), "%v", err)
	}
}

// keep puts all that is known into files beside the server's program, and returns
// where.
func (w *world) keep() string {
	dir, err := os.MkdirTemp(w.dir, fmt.Sprintf("chaos-%d-", w.config.Seed))
	if !assert.NoError(w.t, err) {
		return ""
	}
	write := func(name string, content any) {
		data, err := json.Marshal(content)
		if assert.NoError(w.t, err) {
			assert.NoError(w.t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
	}
	write("events.json", w.found)
	for _, e := range w.emissions {
		for i, l := range e.lives {
			<-l.done
			name := fmt.Sprintf("emitter-%d-life-%d", e.number, i)
			write(name+".json", l.lines)
			assert.NoError(w.t, os.WriteFile(filepath.Join(dir, name+".log"), []byte(l.log.String()), 0o600))
		}
	}
	return dir
}

// freePort returns a port for etcd. It lies below those that the system gives to
// outgoing connections, which could take it while the server is away.
func freePort(t *testing.T) int {
	t.Helper()
	const first, last = 20000, 32000
	for range 100 {
		port := first + rand.IntN(last-first)
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
	require.Fail(t, "no free port")
	return 0
}
