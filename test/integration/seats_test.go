package integration

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// holdSeats makes n creates of Events whose bodies do not come, so that the server
// waits for them: each keeps its seat, or its place in a queue, and tries again where
// it has neither. It returns when one is seated. release, which the end of the test
// calls too, ends them.
func holdSeats(t *testing.T, config *rest.Config, eventsURL string, n int) (release func()) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	seated := make(chan struct{})
	ctx, cancel := context.WithCancel(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		// A server asks for the body when it begins to read it, and that is behind
		// priority and fairness.
		Got100Continue: sync.OnceFunc(func() { close(seated) }),
	}))
	var goroutines sync.WaitGroup
	for range n {
		goroutines.Go(func() {
			for ctx.Err() == nil {
				body, never := io.Pipe()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, config.Host+eventsURL, body)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Expect", "100-continue")
				if response, err := client.Do(req); err == nil {
					_ = response.Body.Close() // there was no place for it
				}
				_ = never.Close()
			}
		})
	}
	release = sync.OnceFunc(func() {
		cancel()
		goroutines.Wait()
		client.CloseIdleConnections()
	})
	t.Cleanup(release)
	select {
	case <-seated:
	case <-time.After(patience):
		require.Fail(t, "no seat")
	}
	return release
}
