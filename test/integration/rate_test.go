package integration

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// creates notes when a client sends its creates.
type creates struct {
	mu    sync.Mutex
	times []time.Time
	next  http.RoundTripper
}

func (c *creates) RoundTrip(req *http.Request) (*http.Response, error) {
	if verb, _, _ := describe(req); verb == "create" {
		c.mu.Lock()
		c.times = append(c.times, time.Now())
		c.mu.Unlock()
	}
	return c.next.RoundTrip(req)
}

func TestRateLimitIsTheBroadcastersOwn(t *testing.T) {
	t.Parallel()
	const n = events.DefaultBurst + 100
	namespace := apiserver.Namespace(t)
	config := apiserver.Config(t)
	config.QPS, config.Burst = 0, 0 // client-go's defaults: 5 a second, after 10 at once
	const withTheClients = (n - 10) / 5 * time.Second
	sent := &creates{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		sent.next = next
		return sent
	})
	r := newRecording(t, config, events.Options{})
	recorder := r.recorder()
	for i := range n {
		emit(recorder, podIn(namespace, fmt.Sprintf("pod-%d", i)), 1)
	}

	begin := time.Now()
	r.start(t)
	r.flush(t)
	elapsed := time.Since(begin)
	t.Logf("%d requests in %v; with the client's limit it would have been %v", n, elapsed.Round(time.Millisecond), withTheClients)
	assert.Less(t, elapsed, withTheClients/2)
	require.Len(t, sent.times, n)
	for first := range n {
		for last := first; last < n; last++ {
			// A worker asks for leave before it makes a request, so that as many
			// as there are workers may come later than they might have.
			within := sent.times[last].Sub(sent.times[first])
			allowed := events.DefaultBurst + events.DefaultQPS*within.Seconds() + events.DefaultWorkers
			require.LessOrEqual(t, float64(last-first), allowed, "requests %d to %d within %v", first, last, within)
		}
	}
	r.requireAccounted(t, n)
}
