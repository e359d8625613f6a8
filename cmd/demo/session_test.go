package main

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/eventseries/eventseries/series"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSessionHandlesWatchEvents(t *testing.T) {
	var display changes
	s := &session{observer: newTestObserver(), server: newMemory(), display: &display}
	event := eventOf(pulled, "1", series.Singleton, 1)
	require.NoError(t, s.handle(watch.Event{Type: watch.Added, Object: event}))
	require.NoError(t, s.handle(watch.Event{Type: watch.Modified, Object: event}), "unchanged")
	assert.Equal(t, []step{stepCreated}, display.steps)
	require.NoError(t, s.handle(watch.Event{Type: watch.Deleted, Object: event}))
	assert.Equal(t, []string{"deleted"}, s.observer.find(pulled).faults)

	require.ErrorContains(t, s.handle(watch.Event{Type: watch.Error, Object: &metav1.Status{Message: "too old resource version"}}), "too old")
	require.ErrorContains(t, s.handle(watch.Event{Type: watch.Added, Object: &eventsv1.EventList{}}), "unexpected ADDED of *v1.EventList")
}

// TestSessionInMemory runs what the demo shows first.
func TestSessionInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := os.CreateTemp(t.TempDir(), "")
		require.NoError(t, err)
		defer out.Close()
		began := time.Now()
		require.NoError(t, demoInMemory(t.Context(), options{}, out))
		assert.GreaterOrEqual(t, time.Since(began), 2*time.Hour+series.FinishAfter)
		assert.Less(t, time.Since(began), 2*time.Hour+15*time.Minute)
		text, err := os.ReadFile(out.Name())
		require.NoError(t, err)
		assert.Equal(t, 4, strings.Count(string(text), "  finished   "))
		assert.Contains(t, string(text), "Singleton → Ongoing → 4 heartbeats → Finished\n")
		assert.Contains(t, string(text), "OK: every Event")
	})
}

func TestSessionPhase(t *testing.T) {
	now := time.Now()
	s := &session{emitUntil: now.Add(2500 * time.Millisecond)}
	assert.Equal(t, "the controllers emit for another 3s", s.phase(now))
	assert.Equal(t, "idle: a series finishes when it has been quiet for its window", s.phase(s.emitUntil))
	s.done = true
	assert.Equal(t, "done", s.phase(s.emitUntil))
}

// changes is a display that records the changes.
type changes struct {
	display
	steps []step
}

func (c *changes) changed(_ snapshot, what step, _ row) { c.steps = append(c.steps, what) }
