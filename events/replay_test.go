package events

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/tracker"
)

var replayLog = flag.String("replay.log", "", "the file to which requests and losses of random histories are written")

// A replay makes a history in a bubble follow from its seed, so that a failure can be
// repeated in another process. A nil replay changes nothing. Three things are random otherwise:
//
//   - What processes draw. [replay.fix] has it follow from the seed.
//   - The order of goroutines that wake at the same time. [replay.sink] has requests begin
//     and end one at a time, each at a time of its own, which follows from the request, and
//     [replay.fix] has the rate limiter let them through one at a time. A shutdown ignores the
//     limiter.
//   - What the dispatcher does while the test does something else. [replay.settle] waits
//     until nothing runs.
//
// The times at which the test acts must differ from those of requests and deadlines. They
// do if they are whole microseconds, and not a round time after each other: see
// [replay.drift].
type replay struct {
	seed uint64

	mu        sync.Mutex
	processes int            // so far
	taken     map[int64]bool // when requests begin and end
	log       *os.File       // of all that was noted, or nil
}

// newReplay returns the replay of a history, and logs how to repeat it if t fails.
func newReplay(t *testing.T, seed uint64, flags ...string) *replay {
	r := &replay{seed: seed, taken: make(map[int64]bool)}
	if *replayLog != "" {
		var err error
		r.log, err = os.OpenFile(*replayLog, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		r.end()
		if t.Failed() {
			t.Logf("go test ./events -run '%s' %s repeats this; -replay.log=FILE writes what happens", exactly(t.Name()), strings.Join(flags, " "))
		}
	})
	return r
}

// exactly returns a pattern for a test of that name.
func exactly(name string) string { return "^" + strings.ReplaceAll(name, "/", "$/^") + "$" }

// hash returns a hash of what that follows from the seed.
func (r *replay) hash(what ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %q", r.seed, what)
	return h.Sum64()
}

// fix has all that is random in b, the next process, which has not started, follow from the
// seed.
func (r *replay) fix(b *Broadcaster) {
	if r == nil {
		return
	}
	opts := b.opts.tracker()
	r.processes++
	opts.Seed = max(r.hash(r.processes), 1)
	rng := rand.New(rand.NewPCG(opts.Seed, 0))
	opts.Jitter = func(d time.Duration) time.Duration { // under the lock of the tracker
		return d + time.Duration(rng.Float64()*retryJitter*float64(d))
	}
	b.lists.jitter = func(d time.Duration) time.Duration { return d + d/10 }
	b.tracker = tracker.New(opts, b.clock.Now())
	// One request at a time, and none a round time after another one, when that is slow.
	b.limiter = rate.NewLimiter(min(b.limiter.Limit(), 1000)*0.9973, 1)
}

// settle returns when nothing runs.
func (r *replay) settle() {
	if r != nil {
		synctest.Wait()
	}
}

// drift is added to the times between what the test does, so that no event comes at a
// deadline that follows from another one.
const drift = 7 * time.Microsecond

// note logs what happens.
func (r *replay) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.log == nil {
		return
	}
	if _, err := fmt.Fprintf(r.log, time.Now().Format("02 15:04:05.000000000 ")+format+"\n", args...); err != nil {
		panic(err)
	}
}

// end ends the log. What comes after the test function is no part of the history: a process
// that was killed in it gets a dispatcher for its Shutdown, which runs while Flush does.
func (r *replay) end() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.log != nil {
		_ = r.log.Close()
		r.log = nil
	}
}

// turn waits for a time that nothing else has, between one and two milliseconds from now.
func (r *replay) turn(what string, args ...any) {
	r.mu.Lock()
	now := time.Now()
	at := now.Truncate(time.Millisecond).UnixNano() + int64(time.Millisecond) + int64(r.hash(what, args, now.UnixNano())%uint64(time.Millisecond))
	for at%1000 == 0 || r.taken[at] {
		at++
	}
	r.taken[at] = true
	r.mu.Unlock()
	time.Sleep(time.Unix(0, at).Sub(now))
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.taken, at)
}

// inTurn makes a request.
func inTurn[T any](r *replay, verb, namespace, name, body string, do func() (T, error)) (T, error) {
	r.turn(verb, namespace, name, body)
	r.note("%s %s/%s %s", verb, namespace, name, body)
	response, err := do()
	r.turn("answer", verb, namespace, name, body)
	r.note("%s %s/%s: %v", verb, namespace, name, err)
	return response, err
}

// sink returns a sink that makes requests one at a time.
func (r *replay) sink(to EventSink) EventSink {
	if r == nil {
		return to
	}
	s := replaySink{to, r}
	if lister, ok := to.(EventLister); ok {
		return replayLister{s, lister}
	}
	return s
}

type replaySink struct {
	EventSink
	*replay
}

func (s replaySink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	body, err := json.Marshal(event)
	if err != nil {
		return nil, err
	}
	return inTurn(s.replay, "create", event.Namespace, event.Name, string(body), func() (*eventsv1.Event, error) { return s.EventSink.Create(ctx, event) })
}

func (s replaySink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return inTurn(s.replay, "patch", event.Namespace, event.Name, string(data), func() (*eventsv1.Event, error) { return s.EventSink.Patch(ctx, event, data) })
}

type replayLister struct {
	replaySink
	lister EventLister
}

func (s replayLister) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	return inTurn(s.replay, "list", namespace, "", fmt.Sprint(opts), func() (*eventsv1.EventList, error) { return s.lister.List(ctx, namespace, opts) })
}

// dropped notes a loss.
func (r *replay) dropped(d Drop) {
	if r == nil {
		return
	}
	r.note("drop %s %s/%s %s %d", d.Reason, d.Key.Regarding.Namespace, d.Key.Regarding.Name, cmp.Or(d.Key.Note, d.Note), d.Count)
}

// Two processes that run a history with one seed make the same requests at the same times,
// get the same answers, and lose the same.
func TestHistoriesRepeat(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	for name, args := range map[string][]string{
		"gates":  {"-test.run=^TestGatesInRandomFaults$", "-gates.first=3", "-gates.seeds=1"},
		"soak":   {"-test.run=^TestSoak$", "-soak.seed=4", "-soak.days=1", "-soak.series=200"},
		"backup": {"-test.run=^TestRestoredBackup$/^3,_restarts:_true$"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logs [2][]string
			for i := range logs {
				file := filepath.Join(t.TempDir(), fmt.Sprint(i))
				output, err := exec.CommandContext(t.Context(), program, append(args, "-replay.log="+file)...).CombinedOutput()
				require.NoError(t, err, "%s", output)
				log, err := os.ReadFile(file)
				require.NoError(t, err)
				logs[i] = strings.Split(string(log), "\n")
			}
			require.Greater(t, len(logs[0]), 100)
			for i := range min(len(logs[0]), len(logs[1])) {
				require.Equal(t, logs[0][i], logs[1][i], "after %d lines", i)
			}
			require.Len(t, logs[1], len(logs[0]))
		})
	}
}
