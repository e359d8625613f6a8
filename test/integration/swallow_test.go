package integration

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// swallowed knows which requests a front will never answer. A client may give up
// those and no others: on a busy machine, any answer can take longer than the
// time that a test would wait for one which does not come. The zero value is ready
// for use.
type swallowed struct {
	mu       sync.Mutex
	last     int
	requests map[string]chan struct{} // closed when the request is swallowed
}

// requestHeader says the number of a request.
const requestHeader = "X-Eventseries-Request"

// number returns the number of the next request, and a channel that is closed
// when it is swallowed.
func (s *swallowed) number() (number string, is <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	number = strconv.Itoa(s.last)
	if s.requests == nil {
		s.requests = map[string]chan struct{}{}
	}
	c := make(chan struct{})
	s.requests[number] = c
	return number, c
}

// swallow says that a request will not be answered.
func (s *swallowed) swallow(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := r.Header.Get(requestHeader)
	if c, ok := s.requests[number]; ok {
		close(c)
		delete(s.requests, number)
	}
}

// transport returns a transport whose requests end with their contexts only if
// they are swallowed.
func (s *swallowed) transport(next http.RoundTripper) http.RoundTripper {
	return &steadyTransport{swallowed: s, next: next}
}

type steadyTransport struct {
	swallowed *swallowed
	next      http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *steadyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	number, isSwallowed := t.swallowed.number()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	context.AfterFunc(r.Context(), func() {
		select {
		case <-isSwallowed:
			cancel()
		case <-ctx.Done():
		}
	})
	r = r.Clone(ctx)
	r.Header.Set(requestHeader, number)
	response, err := t.next.RoundTrip(r)
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &cancellingBody{response.Body, cancel}
	return response, nil
}

// cancellingBody is a body that releases its context.
type cancellingBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *cancellingBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
