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

	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/internal/workload"
)

// logTime formats a time as the logger does.
func logTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// The log says when requests begin to fail, when they have failed for an hour, and when they work
// again, each with the first error.
func TestOutageIsLogged(t *testing.T) {
	for name, err := range map[string]error{"trouble": io.EOF, "push-back": statusError(429, 600), "forbidden": statusError(403, 0)} {
		runInBubble(t, name, Options{}, func(t *testing.T, w *world) {
			w.emit(0)
			synctest.Wait()
			w.server.script(func(context.Context, request) error {
				time.Sleep(time.Millisecond) // so requests with both verbs are in flight before a pause
				return err
			})
			begin, words := time.Now().Add(time.Millisecond), strconv.Quote(err.Error())
			for i := range 50 {
				w.emit(i)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			for _, verb := range []string{"create", "patch"} {
				lines := w.logs.with("Cannot write events, will try again", fmt.Sprintf(`"verb"=%q`, verb))
				require.Len(t, lines, 1)
				assert.Contains(t, lines[0], `"error"=`+words)
				assert.Contains(t, lines[0], fmt.Sprintf(`"namespace"="ns" "verb"=%q "failedRequests"=1 "failing"=`, verb))
				assert.Contains(t, lines[0], fmt.Sprintf(`"since"=%q`, logTime(begin)))
			}
			w.server.script(always(statusError(500, 0)))
			time.Sleep(5 * time.Hour)
			for _, verb := range []string{"create", "patch"} {
				lines := w.logs.with("Cannot write events, will try again", fmt.Sprintf(`"verb"=%q`, verb), `"waiting"=50 "since"="`+logTime(begin))
				assertBetween(t, 3, 6, len(lines))
			}
			w.server.script(nil)
			time.Sleep(30 * time.Minute)
			for _, verb := range []string{"create", "patch"} {
				over := w.logs.with("Events are written again", `"namespace"="ns"`, fmt.Sprintf(`"verb"=%q`, verb))
				require.Len(t, over, 1)
				assertBetween(t, 5*time.Hour, 5*time.Hour+30*time.Minute, durationIn(t, over[0], "failedFor"))
				assert.Contains(t, over[0], `"firstErr"=`+words)
				assert.NotContains(t, over[0], `"failedRequests"=1 `)
			}
			assertBetween(t, 10, 16, w.logs.atVerbosity0())
		})
	}
}

// atVerbosity0 returns how many lines a program logs that sets no verbosity.
func (l *logs) atVerbosity0() int { return len(l.with()) - len(l.with(`"level"=2`)) }

// durationIn returns a duration from a log line.
func durationIn(t *testing.T, line, key string) time.Duration {
	t.Helper()
	_, after, _ := strings.Cut(line, `"`+key+`"="`)
	value, _, _ := strings.Cut(after, `"`)
	d, err := time.ParseDuration(value)
	require.NoError(t, err, line)
	return d
}

// What fails now and then has few lines, and one for each when that is over.
func TestMomentsAreLogged(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		for i := range 180 {
			w.server.script(once(io.EOF))
			w.emit(i)
			time.Sleep(time.Minute)
		}
		lines := len(w.logs.with("Cannot write events"))
		assertBetween(t, tracker.MaxShown, 4*tracker.MaxShown, lines)
		assert.Len(t, w.logs.with("Events are written again"), lines)
		assert.Equal(t, 2*lines, w.logs.atVerbosity0())
	})
}

// A rejected Event is no failure of its namespace, and nothing says when it is over.
func TestRejectedEventsAreNotFailing(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(always(statusError(422, 0)))
		w.emit(0)
		synctest.Wait()
		assert.Len(t, w.logs.with("Cannot write events", `"namespace"="ns" "event"=`), 1)
		w.server.script(nil)
		time.Sleep(time.Hour)
		w.server.script(always(statusError(500, 0)))
		w.emit(1)
		synctest.Wait()
		assert.Len(t, w.logs.with("Cannot write events", `"failing"=1`), 1)
		w.server.script(nil)
		time.Sleep(time.Minute)
	})
}

// The Event expires in an outage, so the next patch finds none: the server handles patches again.
func TestRecoveryWithoutAWrittenPatch(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.api.TTL = time.Hour
		w.loop(2, time.Minute)
		w.server.script(always(statusError(500, 0)))
		w.loop(80, time.Minute)
		w.server.script(nil)
		w.loop(5, time.Minute)
		assert.Len(t, w.logs.with("Events are written again", `"verb"="patch"`), 1)
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
		time.Sleep(time.Hour)
		assert.Len(t, w.logs.with("Cannot list events, will try again", `"error"="EOF"`, `"verb"="list"`, controller, fmt.Sprintf(`"since"=%q`, logTime(begin))), 2)
		s.script(nil)
		time.Sleep(3 * time.Minute)
		assert.EqualValues(t, 1, requested(w.broadcaster.Stats(), "list", "written"))
		assert.Len(t, w.logs.with("Events are listed again", `"failedFor"="1h3`), 1)
		assert.Empty(t, w.logs.with("write events"))
		assert.Empty(t, w.logs.with("written again"))
		w.broadcaster.Shutdown()
	})
}

func TestFailuresAreBounded(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		r := &w.broadcaster.report
		fail := func(namespace string) {
			r.failed(requests{namespace, "create"}, io.EOF, "Cannot write events, will try again")
		}
		for i := range schedule.MaxRemembered + 10 {
			fail(fmt.Sprint("ns-", i))
		}
		assert.Equal(t, schedule.MaxRemembered, r.failures.Len())
	})
}

func TestLogLimit(t *testing.T) {
	l := newLogLimit()
	now := time.Unix(1e9, 0)
	allow := func(kind string, at time.Duration, want bool) {
		t.Helper()
		assert.Equal(t, want, l.allow(kind, now.Add(at)))
	}
	allow("a", 0, true)
	allow("a", time.Second, false)
	allow("b", time.Second, true)
	allow("a", logInterval-1, false)
	allow("a", logInterval, true)
	allow("a", 2*logInterval, true)

	l = newLogLimit()
	for i := range tracker.MaxShown {
		allow(fmt.Sprint(i), 0, true)
	}
	allow("another", 0, false)
	allow("another", logInterval/tracker.MaxShown, true)
	allow("one more", logInterval/tracker.MaxShown, false)
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
					w.emitIn(namespace, "Normal", pod)
					w.emitIn(namespace, "Normal", 0)
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
			assertBetween(t, 3*tt.over, 3*3*tt.over, len(lines)) // of a create, and of a patch, or of both, each hour
			for _, line := range lines {
				assert.Regexp(t, `"namespace"="(bad|worse)"`, line)
			}
			assert.Empty(t, w.logs.with("written again"))
			w.server.script(nil)
			for i := range 30 {
				emit(i)
			}
			assertBetween(t, tt.over, 3*tt.over, len(w.logs.with("written again")))
			assert.Len(t, w.logs.with("Cannot write events"), len(lines))
		})
	}
}

// If all namespaces fail, ten have lines, and then one each 6 minutes.
func TestOutageOfTheServer(t *testing.T) {
	workload.Large(t)
	for name, during := range map[string]time.Duration{"a moment": time.Second, "half an hour": 30 * time.Minute, "three hours": 3 * time.Hour} {
		runInBubble(t, name, Options{QPS: -1}, func(t *testing.T, w *world) {
			emit := func(pod int) {
				for n := range 1000 {
					w.emitIn(fmt.Sprint("ns-", n), "Normal", pod)
				}
			}
			w.server.script(always(io.EOF))
			emit(0)
			time.Sleep(during)
			lines := w.logs.with("Cannot write events")
			w.server.script(nil)
			emit(1)
			time.Sleep(time.Hour)
			over := w.logs.with("Events are written again")
			assertBetween(t, tracker.MaxShown, tracker.MaxShown*(1+int(during/logInterval)+1), len(lines))
			assertBetween(t, tracker.MaxShown, len(lines), len(over))
			assert.Equal(t, len(lines)+len(over), w.logs.atVerbosity0())
		})
	}
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
			assert.Len(t, lines, 2, "after 0 and 60 minutes")
			for i, line := range lines {
				assert.Contains(t, line, words)
				assert.Contains(t, line, fmt.Sprintf(`"count"=%d`, []int{1, 149}[i]))
			}
			assert.Contains(t, lines[0], `"since"="`+start)
		}
		assert.Equal(t, map[DropReason]uint64{DropInvalidObject: 150, DropInvalidType: 150}, w.broadcaster.Stats().Dropped)
		for range 10 {
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		}
		synctest.Wait() // the dispatcher may log the first one
		assert.Len(t, w.logs.with("Dropped events"), 5)
		w.broadcaster.Shutdown()
		lines := w.logs.with("Dropped events")
		require.Len(t, lines, 6)
		assert.Contains(t, lines[4], `"count"=1`)
		assert.Contains(t, lines[5], `"count"=9`)
	})
}

// The log says what to do if no permission in the namespace of the object helps.
func TestDeniedClusterScopedObject(t *testing.T) {
	pod := testPod(0)
	pod.Namespace = "denied"
	for namespace, object := range map[string]runtime.Object{
		"kube-system": &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		"denied":      pod,
	} {
		runInBubble(t, namespace, Options{}, func(t *testing.T, w *world) {
			w.server.script(failIn(apierrors.NewForbidden(eventResource, "x", errors.New("no role")), namespace))
			for i := range 100 {
				w.recorder.Eventf(object, nil, "Warning", "Tested", "Testing", "note")
				w.emit(i)
				time.Sleep(time.Minute)
			}
			for _, message := range []string{"Cannot write events", "Dropped events"} {
				lines := w.logs.with(message, fmt.Sprintf(`"namespace"=%q`, namespace))
				assert.NotEmpty(t, lines)
				if namespace == "denied" {
					assert.Empty(t, w.logs.with(`"hint"=`))
				} else {
					assert.Len(t, w.logs.with(message, `"hint"=`, "ObjectReference"), len(lines))
				}
			}
		})
	}
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
					w.recorder.(Recorder).AnnotatedEventf(testPod(3), testPod(4), map[string]string{"example.com/n": fmt.Sprint(i)},
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
			var all Stats
			var continued uint64
			for _, stats := range []Stats{life(5*time.Hour, true), life(5*time.Hour, false), life(2*time.Hour, false)} {
				continued += stats.Adopted + stats.Restored
				all.Requests = append(all.Requests, stats.Requests...)
			}
			// The histories contain all kinds of requests.
			for _, kind := range []string{"create", "series", "heartbeat", "recreate", "finish", "flush", "list", "look"} {
				assert.Positive(t, requested(all, kind, "written"), kind)
			}
			assert.Positive(t, requested(all, "create", "taken"))
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
			time.Sleep(logInterval)
		}
		assert.Len(t, w.logs.with("Repaired a name"), rounds*tracker.MaxShown)
	})
}
