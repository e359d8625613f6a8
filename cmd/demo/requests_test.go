package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRequestsCountsWhatPasses(t *testing.T) {
	var counted requests
	answer := &http.Response{StatusCode: http.StatusTooManyRequests, Body: http.NoBody}
	transport := counted.wrap(roundTripper(func(*http.Request) (*http.Response, error) { return answer, nil }))
	for _, method := range []string{http.MethodPost, http.MethodPatch, http.MethodPatch, http.MethodGet} {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://localhost", nil)
		require.NoError(t, err)
		response, err := transport.RoundTrip(request)
		require.NoError(t, err)
		assert.Same(t, answer, response)
		require.NoError(t, response.Body.Close())
	}
	assert.Equal(t, calls{creates: 1, patches: 2, others: 1}, counted.calls(), "one that is refused is a call as well")
	assert.Equal(t, 4, counted.calls().total())
}
