package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// logTime is how the guard around a logger writes times.
func logTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// An outage is told of when it begins, each minute, and when it is over: what
// fails, since when, how much waits.
func TestOutageIsLogged(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		words string
	}{
		"trouble":   {io.EOF, `"error"="EOF"`},
		"push-back": {statusError(429, 600), `"pausedUntil"="2000-01-01T01:10:00.000Z"`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, w *world) {
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
		})
	}
}

// durationIn returns a duration that a line has.
func durationIn(t *testing.T, line, key string) time.Duration {
	t.Helper()
	_, after, _ := strings.Cut(line, `"`+key+`"="`)
	value, _, _ := strings.Cut(after, `"`)
	d, err := time.ParseDuration(value)
	require.NoError(t, err, line)
	return d
}

// What was not told does not need to be told that it is over.
func TestTroubleThatWasNotLoggedIsNotLoggedAsOver(t *testing.T) {
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

// Before there is anything to be written, it is the list that shows that the server
// is away.
func TestListTroubleIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := listerThatFails(io.EOF)
		w := newWorldOn(t, s.server, s, Options{})
		begin := time.Now()
		w.start(t)
		time.Sleep(30 * time.Minute)
		lines := w.logs.with("Cannot list events, will try again", `"error"="EOF"`)
		assertBetween(t, 10, 30, len(lines))
		for _, line := range lines {
			assert.Contains(t, line, fmt.Sprintf(`"since"=%q`, logTime(begin)))
		}
		s.err.Store(nil)
		time.Sleep(5 * time.Minute)
		assert.Len(t, w.logs.with("The list of events is answered again", `"failedFor"="3`), 1)
		assert.Empty(t, w.logs.with("write events"))
		assert.Empty(t, w.logs.with("written again"))
		w.broadcaster.Shutdown()
	})
}

// A permission that comes late is told of when it is missed and when it is there,
// for each namespace and verb.
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
		close(emitted)
		synctest.Wait()
		for _, verb := range []string{"patch", "create"} {
			assert.Len(t, w.logs.with("May not write events", fmt.Sprintf(`"verb"=%q`, verb), fmt.Sprintf(`"since"=%q`, logTime(begin)), `"waiting"=2`), 1)
		}
		time.Sleep(time.Hour)
		w.server.script(nil)
		time.Sleep(5 * time.Minute)
		for _, verb := range []string{"patch", "create"} {
			over := w.logs.with("May write events again", `"namespace"="ns"`, fmt.Sprintf(`"verb"=%q`, verb))
			require.Len(t, over, 1)
			assertBetween(t, time.Hour, time.Hour+3*time.Minute, durationIn(t, over[0], "deniedFor"))
			assert.NotContains(t, over[0], `"deniedRequests"=0`)
		}
		assert.Len(t, w.logs.with("May not write events"), 2)

		// It is taken away again.
		w.server.script(always(forbidden))
		w.emit(2)
		synctest.Wait()
		assert.Len(t, w.logs.with("May not write events"), 3)
		w.server.script(nil)
	})
}

// An authorizer that says now this and now that does not get a line for each.
func TestPermissionThatComesAndGoes(t *testing.T) {
	inBubble(t, Options{QPS: -1}, func(t *testing.T, w *world) {
		var n atomic.Int64
		w.server.script(func(context.Context, request) error {
			if n.Add(1)%2 == 0 {
				return statusError(403, 0)
			}
			return nil
		})
		for i := range 1200 {
			w.emit(i)
			time.Sleep(100 * time.Millisecond)
		}
		assertBetween(t, 1, 3, len(w.logs.with("May not write events")))
		assertBetween(t, 1, 3, len(w.logs.with("May write events again")))
		w.server.script(nil)
	})
}

// Namespaces that are all right again make room for others.
func TestDeniedNamespacesAreForgotten(t *testing.T) {
	var f failures
	now := time.Now()
	for i := range maxDenied {
		_, news := f.deny(permission{fmt.Sprint("ns-", i), "create"}, now)
		require.True(t, news)
	}
	_, news := f.deny(permission{"another", "create"}, now)
	assert.False(t, news, "there is no room")
	f.denied[permission{"ns-7", "create"}].end()
	_, news = f.deny(permission{"another", "create"}, now)
	assert.True(t, news)
	assert.Len(t, f.denied, maxDenied)
}
