package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/tracker"
)

// logTime formats a time as the logger does.
func logTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// The recorder logs an outage when it begins, each minute, and when it ends.
func TestOutageIsLogged(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		words string
	}{
		"trouble":   {io.EOF, `"error"="EOF"`},
		"push-back": {statusError(429, 600), `"pausedUntil"="2000-01-01T01:10:00.000Z"`},
	} {
		runInBubble(t, name, Options{}, func(t *testing.T, w *world) {
			time.Sleep(time.Hour)
			w.server.script(always(tt.err))
			begin := time.Now()
			w.emit(0)
			synctest.Wait()
			first := w.logs.with("Cannot write events, will try again", tt.words)
			require.Len(t, first, 1)
			assert.Contains(t, first[0], fmt.Sprintf(`"since"=%q "failedRequests"=1 "waiting"=1 "suppressed"=0`, logTime(begin)))
			for i := range 50 {
				w.emit(i)
			}
			time.Sleep(20 * time.Minute)
			lines := w.logs.with("Cannot write events, will try again")
			assertBetween(t, 2, 20, len(lines))
			last := lines[len(lines)-1]
			assert.Contains(t, last, fmt.Sprintf(`"since"=%q`, logTime(begin)), "it is the same outage still")
			assert.Contains(t, last, `"waiting"=50`)
			w.server.script(nil)
			time.Sleep(20 * time.Minute)
			over := w.logs.with("Events are written again")
			require.Len(t, over, 1)
			assertBetween(t, 20*time.Minute, 31*time.Minute, durationIn(t, over[0], "failedFor"))
			assert.NotContains(t, over[0], `"failedRequests"=0`)
			assert.Contains(t, over[0], `"waiting"=`)
			assert.Empty(t, w.logs.with("list events"))
		})
	}
}

// durationIn returns a duration from a log line.
func durationIn(t *testing.T, line, key string) time.Duration {
	t.Helper()
	_, after, _ := strings.Cut(line, `"`+key+`"="`)
	value, _, _ := strings.Cut(after, `"`)
	d, err := time.ParseDuration(value)
	require.NoError(t, err, line)
	return d
}

func TestRecoveryIsLoggedIfTheOutageWas(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		for i := range 3 {
			w.server.script(once(io.EOF))
			w.emit(i)
			time.Sleep(10 * time.Second)
		}
		assert.Len(t, w.logs.with("Cannot write events"), 1)
		assert.Len(t, w.logs.with("Events are written again"), 1)
		time.Sleep(time.Minute)
		w.server.script(once(io.EOF))
		w.emit(3)
		time.Sleep(10 * time.Second)
		assert.Len(t, w.logs.with("Cannot write events", `"suppressed"=2`, `"failedRequests"=1`), 1)
		assert.Len(t, w.logs.with("Events are written again"), 2)
	})
}

// Without writes, lists show that the server is down. The recorder retries them.
func TestListTroubleIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLister()
		s.script(always(io.EOF))
		w := newWorldOn(t, s.server, s, Options{})
		begin := time.Now()
		w.start(t)
		w.list()
		time.Sleep(10 * time.Minute)
		assertBetween(t, 6, 14, s.requestsOf("list"))
		time.Sleep(20 * time.Minute)
		lines := w.logs.with("Cannot list events, will try again", `"error"="EOF"`)
		assertBetween(t, 10, 30, len(lines))
		for _, line := range lines {
			assert.Contains(t, line, fmt.Sprintf(`"since"=%q`, logTime(begin)))
		}
		s.script(nil)
		time.Sleep(3 * time.Minute)
		assert.EqualValues(t, 1, w.broadcaster.Stats().Writes[WriteKey{"list", "written"}])
		assert.Len(t, w.logs.with("The list of events is answered again", `"failedFor"="3`), 1)
		assert.Empty(t, w.logs.with("write events"))
		assert.Empty(t, w.logs.with("written again"))
		w.broadcaster.Shutdown()
	})
}

func TestPermissionThatComesLate(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.emit(0)
		synctest.Wait()
		forbidden := apierrors.NewForbidden(eventResource, "x", errors.New("no role"))
		emitted := make(chan struct{}) // both, before either is answered
		w.server.script(func(context.Context, request) error {
			<-emitted
			return forbidden
		})
		begin := time.Now()
		w.emit(0) // a patch
		w.emit(1) // a create
		other := testPod(2)
		other.Namespace = "other"
		w.recorder.Eventf(other, nil, "Normal", "Tested", "Testing", "note")
		close(emitted)
		synctest.Wait()
		for _, asked := range []subject{{true, "ns", "patch"}, {true, "ns", "create"}, {true, "other", "create"}} {
			assert.Len(t, w.logs.with("May not write events", fmt.Sprintf(`"namespace"=%q "verb"=%q`, asked.namespace, asked.verb),
				fmt.Sprintf(`"since"=%q`, logTime(begin)), strconv.Quote(forbidden.Error()), `"waiting"=3`), 1)
		}
		time.Sleep(time.Hour)
		w.server.script(nil)
		time.Sleep(7 * time.Minute)
		for _, verb := range []string{"patch", "create"} {
			over := w.logs.with("May write events again", `"namespace"="ns"`, fmt.Sprintf(`"verb"=%q`, verb))
			require.Len(t, over, 1)
			assertBetween(t, time.Hour, time.Hour+6*time.Minute, durationIn(t, over[0], "deniedFor"))
			assert.NotContains(t, over[0], `"deniedRequests"=0`)
		}
		assert.Len(t, w.logs.with("May not write events"), 3)

		// The permission is revoked.
		w.server.script(always(forbidden))
		w.emit(2)
		synctest.Wait()
		assert.Len(t, w.logs.with("May not write events"), 4)
		w.server.script(nil)
	})
}

func TestDeniedNamespacesAreForgotten(t *testing.T) {
	b, now := newWorld(t, Options{}).broadcaster, time.Now()
	o := &b.outages
	denied := func(namespace string, now time.Time) bool {
		_, ok := o.fail(b, subject{true, namespace, "create"}, tracker.Denied, now)
		return ok
	}
	for i := range maxOutages {
		require.True(t, denied(fmt.Sprint("ns-", i), now))
	}
	assert.False(t, denied("another", now), "there is no room")
	o.end(subject{true, "ns-7", "create"})
	assert.True(t, denied("another", now))
	assert.Len(t, o.open, maxOutages)

	later := now.Add(logInterval)
	o.end(subject{true, "ns-8", "create"})
	assert.False(t, denied("ns-8", later.Add(-1)), "it changes all the time")
	o.end(subject{true, "ns-8", "create"})
	assert.True(t, denied("ns-8", later))
	o.end(subject{true, "ns-9", "create"})
	assert.True(t, denied("ns-new", later))
	assert.Len(t, o.limit.kinds, 2, "what the limit no longer needs")
}

// The first loss of a reason is logged at once. One line a minute sums up the others.
func TestDropsAreLoggedOnceInAMinute(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		start := time.Now().UTC().Format("2006-01-02T15:04:05")
		for range 150 {
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
			w.recorder.Eventf(testPod(0), nil, "Strange", "Tested", "Testing", "note")
			time.Sleep(999 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		for reason, words := range map[DropReason]string{
			DropInvalidObject: `"regarding"={"name"=""}`,
			DropInvalidType:   `"regarding"={"name"="pod-0" "namespace"="ns"} "kind"="Pod" "type"="Strange" "eventReason"="Tested" "action"="Testing" "note"="note"`,
		} {
			lines := w.logs.with("Dropped events", string(reason))
			assert.Len(t, lines, 4, "at 0, 60, 120 and 180 s")
			told := 0
			for _, line := range lines {
				assert.Contains(t, line, words)
				var n int
				_, after, _ := strings.Cut(line, `"count"=`)
				_, err := fmt.Sscan(after, &n)
				require.NoError(t, err)
				assertBetween(t, 1, 62, n)
				told += n
			}
			assert.Equal(t, 150, told)
			assert.Contains(t, lines[0], `"since"="`+start)
		}
		assert.Equal(t, map[DropReason]uint64{DropInvalidObject: 150, DropInvalidType: 150}, w.broadcaster.Stats().Dropped)
		for range 10 {
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		}
		synctest.Wait() // the dispatcher may log the first one
		assert.Len(t, w.logs.with("Dropped events"), 9)
		w.broadcaster.Shutdown()
		lines := w.logs.with("Dropped events")
		require.Len(t, lines, 10)
		assert.Contains(t, lines[8], `"count"=1`)
		assert.Contains(t, lines[9], `"count"=9`)
	})
}

func TestHealthyRecorderIsQuiet(t *testing.T) {
	for name, scope := range map[string]Scope{"SameInstance": SameInstance, "SameController": SameController} {
		runBubble(t, name, func(t *testing.T) {
			var said []string
			logger := funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{Verbosity: 0})
			s := newLister()
			s.api.TTL = time.Hour
			s.latency = 5 * time.Millisecond
			life := func(during time.Duration, kill bool) Stats {
				w := newWorldOn(t, s.server, s, Options{Scope: scope})
				w.broadcaster.log.Store(&logger)
				require.NoError(t, w.broadcaster.StartRecordingToSinkWithContext(klog.NewContext(t.Context(), logger)))
				stop, err := w.broadcaster.StartEventWatcher(func(runtime.Object) {})
				require.NoError(t, err)
				defer stop()
				begin := time.Now()
				for i := 0; time.Since(begin) < during; i++ {
					w.emit(0)      // a loop that never ends
					if i%90 == 0 { // one that comes back when its Event is closed
						for range 3 {
							w.emitAs("Warning", 1)
						}
					}
					if i%20 == 0 {
						w.emit(2) // singletons
					}
					w.recorder.(AnnotatedEventRecorder).AnnotatedEventf(testPod(3), testPod(4), map[string]string{"example.com/n": fmt.Sprint(i)},
						"Normal", "Tested", "Testing", "%d", i)
					time.Sleep(30 * time.Second)
					if i == 100 {
						s.remove() // somebody deletes all Events
					}
				}
				if kill {
					w.kill()
				} else {
					w.broadcaster.Shutdown()
				}
				assert.Empty(t, w.broadcaster.Stats().Dropped)
				return w.broadcaster.Stats()
			}
			kinds := make(map[WriteKey]uint64)
			var continued uint64
			for _, stats := range []Stats{life(5*time.Hour, true), life(5*time.Hour, false), life(2*time.Hour, false)} {
				continued += stats.Adopted + stats.Restored
				for kind, n := range stats.Writes {
					kinds[kind] += n
				}
			}
			// The histories contain all kinds of requests.
			for _, kind := range []string{"create", "series", "heartbeat", "recreate", "finish", "flush", "list", "look"} {
				assert.Positive(t, kinds[WriteKey{kind, "written"}], kind)
			}
			assert.Positive(t, kinds[WriteKey{"create", "taken"}])
			assert.Positive(t, continued)
			assert.Empty(t, said)
		})
	}
}
