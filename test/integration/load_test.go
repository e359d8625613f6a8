package integration

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// The heartbeat comes after half an hour by default, so it comes in none of
// these tests.

func TestHotLoopCostsTwoRequests(t *testing.T) {
	t.Parallel()
	namespace := apiserver.Namespace(t)
	r := startRecording(t, apiserver.Config(t), events.Options{})
	recorder, pod := r.recorder(), podIn(namespace, "hot")

	emit(recorder, pod, 1)
	event := eventAbout(t, r.clients, namespace, pod.UID)
	assert.Nil(t, event.Series)
	emit(recorder, pod, 1)
	r.flush(t)
	emit(recorder, pod, 9_998)
	assert.Equal(t, "create events.events.k8s.io: 1, patch events.events.k8s.io: 1", r.requests.String())

	r.flush(t)
	assert.Equal(t, "create events.events.k8s.io: 1, patch events.events.k8s.io: 2", r.requests.String(), "a flush is one request")
	event = eventAbout(t, r.clients, namespace, pod.UID)
	require.NotNil(t, event.Series)
	assert.EqualValues(t, 10_000, event.Series.Count)
	assert.Equal(t, "Ongoing", state(event))
	r.requireAccounted(t, 10_000)
}

func TestHotLoopInManyGoroutines(t *testing.T) {
	t.Parallel()
	const goroutines, each = 8, 1_250
	namespace := apiserver.Namespace(t)
	r := startRecording(t, apiserver.Config(t), events.Options{})
	recorder, pod := r.recorder(), podIn(namespace, "hot")

	var emitters sync.WaitGroup
	for range goroutines {
		emitters.Go(func() { emit(recorder, pod, each) })
	}
	emitters.Wait()
	r.flush(t)
	// At most: the create may have come late enough to be a series from the
	// start, and the series late enough to have all in it.
	assert.Equal(t, 1, r.requests.Count("create", eventsResource))
	assert.LessOrEqual(t, r.requests.Total(), 3, r.requests)
	event := eventAbout(t, r.clients, namespace, pod.UID)
	require.NotNil(t, event.Series)
	assert.EqualValues(t, goroutines*each, event.Series.Count)
	r.requireAccounted(t, goroutines*each)
}

func TestResourceVersionIsNoPartOfTheKey(t *testing.T) {
	t.Parallel()
	const n = 1_000
	namespace := apiserver.Namespace(t)
	r := startRecording(t, apiserver.Config(t), events.Options{})
	recorder, pod := r.recorder(), podIn(namespace, "updated")
	for i := range n {
		pod.ResourceVersion = strconv.Itoa(i + 1)
		emit(recorder, pod, 1)
	}
	r.flush(t)
	event := eventAbout(t, r.clients, namespace, pod.UID)
	require.NotNil(t, event.Series)
	assert.EqualValues(t, n, event.Series.Count)
	assert.Empty(t, event.Regarding.ResourceVersion)
	r.requireAccounted(t, n)
}

func TestManySeriesAtOnce(t *testing.T) {
	t.Parallel()
	const n, goroutines = 2_000, 4
	namespace := apiserver.Namespace(t)
	r := startRecording(t, apiserver.Config(t), events.Options{QPS: -1})
	recorder := r.recorder()
	want := make(map[string]int, n)
	total := 0
	for i := range n {
		occurrences := i%3 + 1
		want[fmt.Sprintf("pod-%d", i)] = occurrences
		total += occurrences
	}

	begin := time.Now()
	var emitters sync.WaitGroup
	for g := range goroutines {
		emitters.Go(func() {
			for i := g; i < n; i += goroutines {
				name := fmt.Sprintf("pod-%d", i)
				emit(recorder, podIn(namespace, name), want[name])
			}
		})
	}
	emitters.Wait()
	r.flush(t)
	t.Logf("%d occurrences of %d series after %v: %s", total, n, time.Since(begin).Round(time.Millisecond), r.requests)

	got := make(map[string]int, n)
	for _, event := range r.written(t) {
		assert.Equal(t, occurrences(&event) > 1, state(&event) == "Ongoing", event.Name)
		got[event.Regarding.Name] += occurrences(&event)
	}
	assert.Equal(t, want, got)
	assert.Equal(t, n, r.Stats().Tracked)
	assert.Equal(t, n, r.requests.Count("create", eventsResource), "a create each")
	r.requireAccounted(t, total)
}
