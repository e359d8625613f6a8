package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/workload"
)

// logTime formats a time as the logger does.
func logTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// The recorder logs an outage when it begins, seldom while it lasts, and when it ends.
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
			assert.Contains(t, first[0], fmt.Sprintf(`"namespace"="ns" "since"=%q "failedRequests"=1 "waiting"=1 "suppressed"=0`, logTime(begin)))
			for i := range 50 {
				w.emit(i)
			}
			time.Sleep(20 * time.Minute)
			lines := w.logs.with("Cannot write events, will try again", `"namespace"="ns"`)
			assert.Len(t, lines, 2)
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
			assert.Contains(t, over[0], `"namespace"="ns"`)
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
		time.Sleep(logAgain)
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
		assert.Len(t, lines, 2)
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
		for _, asked := range []subject{{"ns", "patch"}, {"ns", "create"}, {"other", "create"}} {
			assert.Len(t, w.logs.with("May not write events", fmt.Sprintf(`"namespace"=%q`, asked.namespace), fmt.Sprintf(`"verb"=%q`, asked.kind),
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

func TestTroublesAreBounded(t *testing.T) {
	w, now := newWorld(t, Options{}), time.Now()
	r := &w.broadcaster.report
	denied := func(namespace string, now time.Time) bool {
		_, ok := r.failed(subject{namespace, "create"}, "create", now)
		return ok
	}
	for i := range maxTroubles - 1 {
		denied(fmt.Sprint("ns-", i), now)
	}
	assert.True(t, denied("ns", now))
	assert.False(t, denied("another", now), "there is no room")
	now = now.Add(troubleTTL - 1)
	assert.False(t, denied("ns-7", now), "it is logged once")
	assert.False(t, denied("another", now))
	now = now.Add(1)
	assert.True(t, denied("another", now))
	assert.Len(t, r.open, 2, "the others are not tried any more")
}

func TestLogLimit(t *testing.T) {
	l := logLimit{}
	now := time.Unix(1e9, 0)
	allow := func(kind string, at time.Duration, wantSkipped int, want bool) {
		t.Helper()
		skipped, ok := l.allow(kind, now.Add(at))
		assert.Equal(t, want, ok)
		assert.Equal(t, wantSkipped, skipped)
	}
	const again, max = logAgain, logAgainMax
	allow("a", 0, 0, true)
	allow("a", time.Second, 0, false)
	allow("b", time.Second, 0, true)
	allow("a", again-1, 0, false)
	allow("a", again, 2, true)
	allow("a", again+max-1, 0, false)
	allow("a", again+max, 1, true)
	allow("a", again+2*max+max, 0, true) // it was quiet, and begins anew
	allow("a", 2*again+3*max, 0, true)

	l = logLimit{many: 2}
	allow("a", 0, 0, true)
	allow("b", again-2, 0, true)
	allow("c", again-1, 0, false)
	allow("d", again-1, 0, false)
	allow("c", again, 2, true)
	allow("d", again, 0, false)
	assert.Len(t, l.kinds, 2)
}

// emitIn emits an event about a pod in a namespace.
func (w *world) emitIn(namespace string, pod int) {
	object := testPod(pod)
	object.Namespace = namespace
	w.recorder.Eventf(object, nil, "Normal", "Tested", "Testing", "note")
}

// failIn fails requests in the given namespaces.
func failIn(err error, namespaces ...string) func(context.Context, request) error {
	return func(_ context.Context, r request) error {
		if slices.Contains(namespaces, r.Namespace) {
			return err
		}
		return nil
	}
}

// The outage of a namespace is none of the server. Nothing that works elsewhere ends it, nor
// does another verb that works in the namespace.
func TestOutageOfANamespace(t *testing.T) {
	for name, tt := range map[string]struct {
		fail  func(context.Context, request) error
		wrote bool
		over  int
	}{
		"from the start": {fail: failIn(statusError(500, 0), "bad"), over: 1},
		"later":          {fail: failIn(statusError(500, 0), "bad"), wrote: true, over: 1},
		"two of three":   {fail: failIn(statusError(500, 0), "bad", "worse"), wrote: true, over: 2},
		"pushes back":    {fail: failIn(statusError(429, 0), "bad"), wrote: true, over: 1},
		"one verb": {fail: func(ctx context.Context, r request) error {
			if r.Verb == "create" {
				return failIn(statusError(500, 0), "bad")(ctx, r)
			}
			return nil
		}, wrote: true, over: 1},
	} {
		runInBubble(t, name, Options{}, func(t *testing.T, w *world) {
			emit := func(pod int) {
				for _, namespace := range []string{"good", "bad", "worse"} {
					w.emitIn(namespace, pod)
					w.emitIn(namespace, 0)
				}
				time.Sleep(time.Minute)
			}
			if tt.wrote {
				emit(0)
			}
			w.server.script(tt.fail)
			for i := range 180 {
				emit(i)
			}
			lines := w.logs.with("Cannot write events")
			assertBetween(t, 1, 12*tt.over, len(lines))
			for _, line := range lines {
				assert.Regexp(t, `"namespace"="(bad|worse)"`, line)
			}
			assert.Empty(t, w.logs.with("written again"))
			w.server.script(nil)
			for i := range 30 {
				emit(i)
			}
			over := w.logs.with("written again", `"namespace"=`)
			assert.Len(t, over, tt.over)
			assert.Len(t, w.logs.with("written again"), tt.over)
			assert.Len(t, w.logs.with("Cannot write events"), len(lines))
		})
	}
}

// If all namespaces fail, the server does: a line for each would say less.
func TestOutageOfTheServer(t *testing.T) {
	workload.Large(t)
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		emit := func(rounds int) {
			for i := range rounds {
				for n := range 50 {
					w.emitIn(fmt.Sprint("ns-", n), i)
				}
				time.Sleep(time.Minute)
			}
		}
		emit(2)
		w.server.script(always(io.EOF))
		emit(180)
		lines := w.logs.with("Cannot write events")
		assertBetween(t, 2, 5, len(lines))
		for i, line := range lines {
			assert.Equal(t, i == 0, strings.Contains(line, `"namespace"=`), "the first one is about a namespace, then more fail")
		}
		assert.Empty(t, w.logs.with("written again"))
		w.server.script(nil)
		emit(60)
		assert.Len(t, w.logs.with("written again"), 2, "the server, and the first namespace")
		assert.Len(t, w.logs.with("Cannot write events"), len(lines))
	})
}

// The first loss of a reason is logged at once. Few lines sum up the others.
func TestDropsAreSummedUpInTheLog(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		start := time.Now().UTC().Format("2006-01-02T15:04:05")
		for range 150 {
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
			w.recorder.Eventf(testPod(0), nil, "Strange", "Tested", "Testing", "note")
			time.Sleep(9999 * time.Millisecond)
		}
		time.Sleep(3 * time.Hour)
		for reason, words := range map[DropReason]string{
			DropInvalidObject: `"regarding"={"name"=""}`,
			DropInvalidType:   `"regarding"={"name"="pod-0" "namespace"="ns"} "kind"="Pod" "type"="Strange" "eventReason"="Tested" "action"="Testing" "note"="note"`,
		} {
			lines := w.logs.with("Dropped events", string(reason))
			assert.Len(t, lines, 3, "after 0, 10, and 70 minutes")
			for i, line := range lines {
				assert.Contains(t, line, words)
				assert.Contains(t, line, fmt.Sprintf(`"count"=%d`, []int{1, 60, 89}[i]))
			}
			assert.Contains(t, lines[0], `"since"="`+start)
		}
		assert.Equal(t, map[DropReason]uint64{DropInvalidObject: 150, DropInvalidType: 150}, w.broadcaster.Stats().Dropped)
		for range 10 {
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		}
		synctest.Wait() // the dispatcher may log the first one
		assert.Len(t, w.logs.with("Dropped events"), 7)
		w.broadcaster.Shutdown()
		lines := w.logs.with("Dropped events")
		require.Len(t, lines, 8)
		assert.Contains(t, lines[6], `"count"=1`)
		assert.Contains(t, lines[7], `"count"=9`)
	})
}

// The log says what to do if no permission in the namespace of the object helps.
func TestDeniedClusterScopedObject(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(failIn(apierrors.NewForbidden(eventResource, "x", errors.New("no role")), "kube-system", "denied"))
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
		for i := range 100 {
			w.recorder.Eventf(node, nil, "Warning", "Tested", "Testing", "note")
			w.emitIn("denied", 0)
			w.emit(i)
			time.Sleep(time.Minute)
		}
		for _, message := range []string{"May not write events", "Dropped events"} {
			assert.NotEmpty(t, w.logs.with(message, `"namespace"="kube-system"`, `"hint"=`, "ObjectReference"))
			assert.NotEmpty(t, w.logs.with(message, `"namespace"="denied"`))
			assert.Empty(t, w.logs.with(message, `"namespace"="denied"`, `"hint"=`))
		}
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

func TestBadNameIsLoggedOnce(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		r := w.broadcaster.NewRecorder(testScheme(), "two words")
		for i := range 10 {
			r.Eventf(testPod(i), nil, "Normal", "Tested", "Testing", "note")
		}
		r.WithLogger(klog.Background()).Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note")
		w.flush(t)
		assert.Len(t, w.logs.with("Repaired a name", "two words", "two-words"), 1)
		list := w.server.list()
		assert.Len(t, list, 10)
		assert.Equal(t, "two-words", list[0].ReportingController)

		w.broadcaster.NewRecorder(testScheme(), controller)
		for range 100 {
			w.broadcaster.NewRecorder(testScheme(), "two words")
		}
		assert.Len(t, w.logs.with("Repaired a name"), 1)
		w.broadcaster.NewRecorder(testScheme(), "three more words")
		assert.Len(t, w.logs.with("Repaired a name"), 2)
	})
}

// A program makes up names for ever.
func TestEndlessBadNames(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		const names, rounds = 5000, 3
		scheme := testScheme()
		for round := range rounds {
			for i := range names {
				w.broadcaster.NewRecorder(scheme, fmt.Sprint("bad name ", round, "-", i))
			}
			time.Sleep(logAgain)
		}
		assert.Len(t, w.logs.with("Repaired a name"), rounds*maxRepairs)
		assert.Len(t, w.logs.with("Repaired a name", fmt.Sprintf(`"suppressed"=%d`, names-maxRepairs)), rounds-1)
		assert.LessOrEqual(t, len(w.broadcaster.report.repairs.kinds), maxRepairs)
	})
}
