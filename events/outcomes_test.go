package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/series"
)

// What must be tried again is: after a second, with up to a fifth on top, and the
// Event is the same as if nothing had happened.
func TestTroubleIsRetried(t *testing.T) {
	for _, err := range []error{
		statusError(500, 0), statusError(502, 0), statusError(503, 0), statusError(504, 0), statusError(408, 0),
		urlError(syscall.ECONNREFUSED), urlError(syscall.ECONNRESET), io.EOF, &apierrors.UnexpectedObjectError{},
	} {
		t.Run(err.Error(), func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, w *world) {
				w.server.script(once(err))
				w.emit(0)
				time.Sleep(1200 * time.Millisecond)
				synctest.Wait()
				assert.EqualValues(t, 1, countOf(w.server.only(t)))
				requests := w.server.log()
				require.Len(t, requests, 2)
				assert.Equal(t, requests[0].body, requests[1].body)
				assertBetween(t, time.Second, 1200*time.Millisecond, requests[1].at.Sub(requests[0].at))
				assert.Len(t, w.logs.with("Cannot write events", "will try again"), 1)
				assert.Len(t, w.logs.with("Events are written again"), 1)
			})
		})
	}
}

// The delays double from a second to two minutes, and then stay there for as
// long as it takes.
func TestRetriesBackOffAndNeverEnd(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(always(statusError(500, 0)))
		w.emit(0)
		time.Sleep(6 * time.Hour)
		requests := w.server.log()
		require.Greater(t, len(requests), 100)
		want := time.Second
		for i := range len(requests) - 1 {
			assertBetween(t, want, want*6/5, requests[i+1].at.Sub(requests[i].at))
			want = min(2*want, 2*time.Minute)
		}
		assert.LessOrEqual(t, len(w.logs.with("Cannot write events")), 6*60, "at most once in a minute")
		w.server.script(nil)
		w.flush(t)
		assert.EqualValues(t, 1, countOf(w.server.only(t)))
	})
}

// A success ends the back-off: the next failure is a first one.
func TestSuccessResetsRetries(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(always(statusError(500, 0)))
		w.emit(0)
		time.Sleep(2 * time.Minute)
		w.server.script(nil)
		w.flush(t)
		w.server.script(once(statusError(500, 0)))
		w.emit(0) // is a series now
		before := time.Now()
		w.flush(t)
		assertBetween(t, 0, 1200*time.Millisecond, time.Since(before))
	})
}

// While a create cannot be made occurrences are counted, and one create carries
// all of them.
func TestOneCreateCarriesWhatWasCountedMeanwhile(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(always(io.EOF))
		for range 57 {
			w.emit(0)
			time.Sleep(time.Second)
		}
		w.server.script(nil)
		w.flush(t)
		assert.EqualValues(t, 57, countOf(w.server.only(t)))
	})
}

func TestDeniedIsRetriedSeldomAndLoggedOnce(t *testing.T) {
	for _, err := range []error{apierrors.NewUnauthorized("no token"), apierrors.NewForbidden(eventResource, "x", errors.New("no role"))} {
		t.Run(err.Error(), func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, w *world) {
				w.server.script(always(err))
				for i := range 10 {
					w.emit(i)
				}
				time.Sleep(time.Hour)
				requests := w.server.log()
				// Every two minutes, with up to a fifth on top.
				assertBetween(t, 10*25, 10*31, len(requests))
				assert.Len(t, w.logs.with("May not write events", strconv.Quote(err.Error()), `"namespace"="ns"`, `"verb"="create"`), 1)
				w.server.script(nil)
				time.Sleep(3 * time.Minute)
				assert.Len(t, w.server.list(), 10)
			})
		})
	}
}

func TestDeniedIsLoggedOncePerNamespaceAndVerb(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.emit(0)
		synctest.Wait()
		w.server.script(always(apierrors.NewForbidden(eventResource, "x", errors.New("no role"))))
		w.emit(0) // a patch
		w.emit(1) // a create
		other := testPod(2)
		other.Namespace = "other"
		w.recorder.Eventf(other, nil, "Normal", "Tested", "Testing", "note")
		time.Sleep(time.Hour)
		assert.Len(t, w.logs.with("May not write events"), 3)
		assert.Len(t, w.logs.with("May not write events", `"namespace"="ns"`, `"verb"="patch"`), 1)
		assert.Len(t, w.logs.with("May not write events", `"namespace"="ns"`, `"verb"="create"`), 1)
		assert.Len(t, w.logs.with("May not write events", `"namespace"="other"`, `"verb"="create"`), 1)
		w.server.script(nil)
	})
}

func TestManyDeniedNamespacesAreNotRemembered(t *testing.T) {
	inBubble(t, Options{QPS: -1}, func(t *testing.T, w *world) {
		w.server.script(always(apierrors.NewForbidden(eventResource, "x", errors.New("no role"))))
		for i := range maxDenied + 100 {
			pod := testPod(0)
			pod.Namespace = fmt.Sprint("ns-", i)
			w.recorder.Eventf(pod, nil, "Normal", "Tested", "Testing", "note")
		}
		time.Sleep(time.Minute)
		assert.Len(t, w.logs.with("May not write events"), maxDenied)
		w.server.script(nil)
	})
}

func TestEventThatIsGoneIsRecreated(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		for range 10 {
			w.emit(0)
		}
		w.flush(t)
		w.server.remove()
		w.emit(0)
		w.flush(t)
		event := w.server.only(t)
		assert.EqualValues(t, 11, countOf(event))
		assert.Equal(t, series.Ongoing.String(), stateOf(event))
		requests := w.server.log()
		assert.Equal(t, []string{"patch", "create"}, verbs(requests[len(requests)-2:]))
		assert.EqualValues(t, 1, w.broadcaster.Stats().Writes[WriteKey{"recreate", "written"}])
	})
}

// An Event of the same name that somebody else made is left as it is.
func TestNameThatAStrangerHasLeadsToAUniqueName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		key := keyOf(0)
		stranger := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: key.BaseName()}, Note: "mine"}
		w.server.put(stranger)
		w.start(t)
		w.emit(0)
		w.flush(t)
		w.broadcaster.Shutdown()

		requests := w.server.log()
		assert.Equal(t, []string{"create", "patch", "create"}, verbs(requests))
		assert.Equal(t, "{}", requests[1].body)
		assert.Zero(t, requests[2].at.Sub(requests[0].at), "at once")
		list := w.server.list()
		require.Len(t, list, 2)
		assert.Equal(t, stranger, list[0])
		assert.Regexp(t, `^`+key.BaseName()+`\.[0-9a-f]+$`, list[1].Name)
		assert.EqualValues(t, 1, countOf(list[1]))
		assert.Empty(t, w.broadcaster.Stats().Dropped)
	})
}

// A server that calls every name taken must not be asked in a hot loop, whether
// it shows an Event of that name or not.
func TestNamesThatAreAllTakenAreTriedSeldom(t *testing.T) {
	for name, look := range map[string]error{
		"and nothing is there": apierrors.NewNotFound(eventResource, "x"),
		"and a stranger there": nil,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, w *world) {
				w.server.script(func(_ context.Context, r request) error {
					if r.verb == "create" {
						return apierrors.NewAlreadyExists(eventResource, "x")
					}
					if look == nil {
						w.server.put(&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: r.name.Namespace, Name: r.name.Name}})
					}
					return look
				})
				w.emit(0)
				time.Sleep(10 * time.Minute)
				assert.Less(t, len(w.server.log()), 30)
				w.server.script(nil)
				w.server.remove()
				w.flush(t)
				assert.EqualValues(t, 1, countOf(w.server.only(t)))
			})
		})
	}
}

// The create was made, its answer was lost, and the server refuses to show what
// stands there. It is asked again, and the Event is not written twice.
func TestLookThatIsRefusedAfterALostAnswer(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		var lost, looks atomic.Int32
		w.server.lose = func(r request) error {
			if r.verb == "create" && lost.Add(1) == 1 {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		w.server.script(func(_ context.Context, r request) error {
			if r.body == "{}" && looks.Add(1) < 3 {
				return statusError(405, 0)
			}
			return nil
		})
		w.emit(0)
		w.flush(t)
		assert.EqualValues(t, 1, countOf(w.server.only(t)))
		assert.Equal(t, []string{"create", "create", "patch", "patch", "patch"}, verbs(w.server.log()))
		requests := w.server.log()
		for i := 1; i+1 < len(requests); i++ {
			assert.Greater(t, requests[i+1].at.Sub(requests[i].at), time.Second, "tried again in no hurry")
		}
	})
}

// Somebody else's Event that is never shown holds a series up for a moment.
func TestLookThatIsAlwaysRefused(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		key := keyOf(0)
		w.server.put(&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: key.BaseName()}})
		w.server.script(func(_ context.Context, r request) error {
			if r.body == "{}" {
				return statusError(422, 0)
			}
			return nil
		})
		w.emit(0)
		time.Sleep(20 * time.Second)
		assert.Len(t, w.server.list(), 2)
		assert.Equal(t, []string{"create", "patch", "patch", "patch", "create"}, verbs(w.server.log()))
	})
}

func TestConflictOnAPatchIsRetried(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.emit(0)
		synctest.Wait()
		w.server.script(once(apierrors.NewConflict(eventResource, "x", errors.New("modified"))))
		w.emit(0)
		w.flush(t)
		assert.EqualValues(t, 2, countOf(w.server.only(t)))
		assert.Equal(t, []string{"create", "patch", "patch"}, verbs(w.server.log()))
	})
}

// A patch that the server has carried out and whose answer was lost is sent
// again; it is absolute, so that does no harm.
func TestLostAnswerToAPatch(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.emit(0)
		synctest.Wait()
		lost := false
		w.server.lose = func(request) error {
			if lost {
				return nil
			}
			lost = true
			return io.ErrUnexpectedEOF
		}
		w.emit(0)
		w.flush(t)
		assert.True(t, lost)
		assert.EqualValues(t, 2, countOf(w.server.only(t)))
	})
}

func TestRefusedIsDroppedCountedOfferedAndLogged(t *testing.T) {
	for _, tt := range []struct {
		name   string
		err    error
		reason DropReason
	}{
		{"400", apierrors.NewBadRequest("bad"), DropRejected},
		{"413", apierrors.NewRequestEntityTooLargeError("limit"), DropRejected},
		{"422", statusError(422, 0), DropRejected},
		{"404", apierrors.NewNotFound(eventResource, "x"), DropNamespaceNotFound},
		{"403 terminating", namespaceTerminating(), DropNamespaceTerminating},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, w *world) {
				w.server.script(always(tt.err))
				w.emit(0)
				time.Sleep(2 * time.Minute)
				assert.Len(t, w.server.log(), 1, "not tried again")
				assert.Equal(t, map[DropReason]uint64{tt.reason: 1}, w.broadcaster.Stats().Dropped)
				drops := w.dropped()
				require.Len(t, drops, 1)
				assert.Equal(t, tt.reason, drops[0].Reason)
				assert.Equal(t, 1, drops[0].Count)
				assert.Equal(t, "note", drops[0].Note)
				assert.Equal(t, "pod-0", drops[0].Key.Regarding.Name)
				assert.Len(t, w.logs.with("Dropped events", strconv.Quote(tt.err.Error()), string(tt.reason), "pod-0"), 1)
			})
		})
	}
}

// A loop of events that are refused costs a request a heartbeat, and is counted
// all the same.
func TestRefusedLoop(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(always(statusError(422, 0)))
		for range 2 * 60 * 60 {
			w.emit(0)
			time.Sleep(time.Second)
		}
		assert.LessOrEqual(t, len(w.server.log()), 5)
		time.Sleep(10 * time.Minute)
		assert.Zero(t, w.broadcaster.Stats().Tracked)
		assert.Equal(t, map[DropReason]uint64{DropRejected: 7200}, w.broadcaster.Stats().Dropped)
		assert.LessOrEqual(t, len(w.logs.with("Dropped events")), 6)
	})
}

// A sink that fails now and then must not have a line of log for each time that
// it does not.
func TestRecoveryIsNotLoggedForEachEvent(t *testing.T) {
	inBubble(t, Options{QPS: -1}, func(t *testing.T, w *world) {
		start := time.Now()
		var n atomic.Int64
		w.server.script(func(context.Context, request) error {
			if n.Add(1)%2 == 0 {
				return io.EOF
			}
			return nil
		})
		for i := range 1000 {
			w.emit(i)
			time.Sleep(50 * time.Millisecond)
		}
		w.flush(t)
		minutes := int(time.Since(start)/time.Minute) + 1
		assert.LessOrEqual(t, len(w.logs.with("Cannot write events")), minutes)
		assert.LessOrEqual(t, len(w.logs.with("Events are written again")), minutes)
		assert.NotEmpty(t, w.logs.with("Events are written again"))
	})
}

func assertBetween[T ~int | ~int64](t *testing.T, low, high, got T) {
	t.Helper()
	assert.GreaterOrEqual(t, got, low)
	assert.LessOrEqual(t, got, high)
}
