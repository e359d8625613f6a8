package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/eventseries/eventseries/internal/workload"
)

// docs/rbac describes how to turn events off in an emergency: withdraw the permission.
func TestPermissionIsASwitch(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		const series = 20
		hour := func() (requests int) {
			before := len(w.server.log())
			for range 60 {
				for i := range series {
					w.emit(i)
				}
				time.Sleep(time.Minute)
			}
			return len(w.server.log()) - before
		}
		hour()
		w.server.script(always(apierrors.NewForbidden(eventResource, "x", errors.New("no role"))))
		for _, most := range []int{20, 13, 13, 13, 13} {
			// Each series is tried after 1, 2, 4 seconds and so on, then each 5 minutes.
			assertBetween(t, series/2, most*series, hour())
			stats := w.broadcaster.Stats()
			assert.Equal(t, series, stats.Tracked)
			assert.LessOrEqual(t, stats.Waiting, series)
		}
		stats := w.broadcaster.Stats()
		assert.Len(t, stats.Dropped, 1)
		// Each of the last two hours may still reach the server.
		assertBetween(t, 3*60*series, 5*60*series, int(stats.Dropped[DropDenied]))

		w.server.script(nil)
		time.Sleep(6 * time.Minute)
		assert.Zero(t, w.broadcaster.Stats().Waiting)
		assert.Equal(t, stats.Dropped, w.broadcaster.Stats().Dropped)
	})
}

// What is dropped of a loop that is denied does not depend on how many others are. What waits is
// written soon after the permission.
func TestDeniedLoopsLoseTheSame(t *testing.T) {
	for _, loops := range []int{1, 3, 40} {
		runInBubble(t, fmt.Sprint(loops), Options{}, func(t *testing.T, w *world) {
			w.server.script(always(statusError(403, 0)))
			w.minutes(24*60, [2]int{0, loops})
			dropped := make(map[string]int)
			for _, d := range w.dropped() {
				assert.Equal(t, DropDenied, d.Reason)
				dropped[d.Key.Regarding.Name] += d.Count
			}
			assert.Len(t, dropped, loops)
			for _, n := range dropped {
				assertBetween(t, 24*60-90, 24*60-1, n) // the latest 80 minutes or so still wait
			}
			w.server.script(nil)
			before := total(w.broadcaster.Stats().Dropped)
			w.minutes(45, [2]int{0, loops})
			for pod := range loops {
				assert.True(t, w.isShown(pod), pod)
			}
			assert.Equal(t, before, total(w.broadcaster.Stats().Dropped))
		})
	}
}

// If a role is withdrawn for all namespaces, a recorder with many series has at most a request a second
// denied in each namespace, and one in 5 minutes for each series.
func TestAllNamespacesAreDenied(t *testing.T) {
	workload.Large(t)
	const series = 2000
	type limit struct{ namespaces, most int }
	for _, l := range workload.Some(limit{200, 36_000}, limit{20, 36_000}) {
		runInBubble(t, fmt.Sprint(l.namespaces), Options{}, func(t *testing.T, w *world) {
			w.server.script(always(statusError(403, 0)))
			for hour := range 3 {
				before := len(w.server.log())
				for range 12 {
					for i := range series {
						w.emitIn(fmt.Sprint("ns-", i%l.namespaces), "Normal", i)
					}
					time.Sleep(5 * time.Minute)
				}
				requests := len(w.server.log()) - before
				if hour == 0 {
					requests -= series // each is tried once
				}
				assert.LessOrEqual(t, requests, l.most)
			}
		})
	}
}

// A shutdown asks once more for each series that was denied, and waits for no permission.
func TestShutdownDoesNotWaitForPermission(t *testing.T) {
	for _, verb := range []string{"create", "patch"} {
		runBubble(t, verb, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.start(t)
			if verb == "patch" {
				for pod := range 100 {
					w.emit(pod)
				}
				w.flush(t)
			}
			w.server.script(func(_ context.Context, r request) error {
				time.Sleep(5 * time.Millisecond)
				if r.Namespace == "ns" && r.Verb == verb {
					return statusError(403, 0)
				}
				return nil
			})
			for range 2 {
				for pod := range 100 {
					w.emit(pod)
				}
				time.Sleep(time.Minute)
			}
			w.emitIn("other", "Normal", 0)
			begin, before := time.Now(), len(w.server.log())
			w.broadcaster.Shutdown()
			assert.Less(t, time.Since(begin), time.Second)
			assert.LessOrEqual(t, len(w.server.log())-before, 110)
			assert.Equal(t, map[DropReason]uint64{DropDenied: 200}, w.broadcaster.Stats().Dropped)
			assert.Len(t, slices.DeleteFunc(w.server.list(), func(e *eventsv1.Event) bool { return e.Namespace != "other" }), 1)
			w.assertAccounted(t)
		})
	}
}

// bad is a script that answers with a code for the objects with a number below n, as an
// admission webhook does.
func bad(code int32, n int) func(context.Context, request) error {
	return func(_ context.Context, r request) error {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.Name, "pod-"), ".")
		if i, err := strconv.Atoi(name); err == nil && i < n {
			return statusError(code, 0)
		}
		return nil
	}
}

// requestsFor returns the times of the requests for the pod of the namespace "ns" with this
// number.
func (w *world) requestsFor(pod int) (at []time.Time) {
	for _, r := range w.server.log() {
		if r.Namespace == "ns" && strings.HasPrefix(r.Name, fmt.Sprintf("pod-%d.", pod)) {
			at = append(at, r.Time)
		}
	}
	return at
}

// A webhook denies or fails the Events about some objects of a namespace. What it permits is
// written at once. What it denies is tried for as long as the server keeps an Event, then
// dropped, and tried again now and then if it goes on.
func TestSomeObjectsAreDenied(t *testing.T) {
	for _, code := range []int32{403, 500} {
		for _, denied := range workload.Some(30, 1, 5, 100) {
			for _, emits := range []bool{false, true} { // others of the namespace emit, too
				runInBubble(t, fmt.Sprint(code, " ", denied, " ", emits), Options{}, func(t *testing.T, w *world) {
					w.server.slow(5 * time.Millisecond)
					w.server.script(bad(code, denied))
					const loop = 5000
					for minute := range 24 * 60 {
						for i := range denied {
							w.emitAs("Warning", i)
						}
						if emits {
							w.emitAs("Warning", loop)
						}
						if minute%97 == 3 {
							emitted := time.Now()
							w.emitAs("Warning", 1000+minute)
							time.Sleep(5 * time.Second)
							requests := w.requestsFor(1000 + minute)
							require.Len(t, requests, 1, "minute %d", minute)
							assert.Less(t, requests[0].Sub(emitted), 5*time.Second)
						}
						time.Sleep(time.Minute)
						if emits && minute%7 == 2 {
							require.True(t, w.isShown(loop), "the loop of a permitted object is stale after %d minutes", minute)
						}
					}
					for i := range denied {
						requests := w.requestsFor(i)
						if code == 403 {
							assert.LessOrEqual(t, len(requests), 300)
						}
					}
					if dropped := w.broadcaster.Stats().Dropped; code == 403 || emits { // otherwise it may be an outage
						assert.NotEmpty(t, dropped)
					}
				})
			}
		}
	}
}

// Namespaces have hung for long, and much waits in them. Then a shutdown writes what others have.
func TestShutdownBesideNamespacesThatHang(t *testing.T) {
	for _, tt := range []struct {
		namespaces, workers int
		passes              time.Duration
		ignores             bool // the sink ignores its context
	}{
		{5, 4, 5 * time.Minute, false},
		{50, 4, 5 * time.Minute, false},
		{40, 1, 10 * time.Second, false},
		{1200, 4, 15 * time.Minute, true},
	} {
		runInBubble(t, fmt.Sprint(tt.namespaces), Options{workers: tt.workers}, func(t *testing.T, w *world) {
			release := make(chan struct{})
			defer close(release)
			w.server.script(func(ctx context.Context, r request) error {
				if r.Namespace == "ns" {
					return nil
				}
				<-ctx.Done()
				if tt.ignores {
					<-release
				}
				return ctx.Err()
			})
			w.unaccounted = true
			for i := range 6 * tt.namespaces {
				w.emitIn(fmt.Sprint("hangs-", i%tt.namespaces), "Warning", i)
			}
			time.Sleep(tt.passes)
			for i := range 100 {
				w.emitAs("Warning", 1000+i)
			}
			w.broadcaster.Shutdown()
			assert.Len(t, w.server.list(), 100)
		})
	}
}
