package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// bridge is an http.RoundTripper for a testing/synctest bubble. It sends requests from
// goroutines outside the bubble, so that they reach a real server, and counts them.
// Virtual time stands still while a request is in flight, because its sender waits for
// a channel from outside. So for the recorders the server is infinitely fast.
type bridge struct {
	lanes chan lane // that are free
	stop  func()    // closes idle lanes and waits for them

	mu       sync.Mutex
	requests map[string]int // by verb
	refused  int            // of the requests
	sent     int64          // bytes of request bodies
}

// lane carries one request at a time.
type lane struct {
	requests  chan *outward
	responses chan *inward
}

// outward is a request without the context and other parts of the bubble.
type outward struct {
	method, url string
	header      http.Header
	body        []byte
}

type inward struct {
	code   int
	header http.Header
	body   []byte
	err    error
}

// newBridge returns a bridge to a server with the given number of lanes. It must be
// called outside the bubble. The caller must call stop after the bubble.
func newBridge(to *http.Client, lanes int) *bridge {
	b := &bridge{lanes: make(chan lane, lanes), requests: make(map[string]int)}
	var running sync.WaitGroup
	for range lanes {
		l := lane{requests: make(chan *outward), responses: make(chan *inward)}
		running.Go(func() {
			for r := range l.requests {
				l.responses <- send(to, r)
			}
		})
		b.lanes <- l
	}
	b.stop = func() {
		for range lanes {
			close((<-b.lanes).requests)
		}
		running.Wait()
	}
	return b
}

// RoundTrip implements http.RoundTripper.
func (b *bridge) RoundTrip(r *http.Request) (*http.Response, error) {
	o := &outward{method: r.Method, url: r.URL.String(), header: r.Header.Clone()}
	if r.Body != nil {
		var err error
		if o.body, err = io.ReadAll(r.Body); err != nil {
			return nil, errors.Join(err, r.Body.Close())
		}
		_ = r.Body.Close() // it has been read
	}
	l := <-b.lanes
	l.requests <- o
	i := <-l.responses
	b.lanes <- l
	b.count(o, i)
	if i.err != nil {
		return nil, i.err
	}
	return &http.Response{
		StatusCode: i.code, Header: i.header, Body: io.NopCloser(bytes.NewReader(i.body)), ContentLength: int64(len(i.body)),
		Proto: "HTTP/2.0", ProtoMajor: 2, Request: r,
	}, nil
}

var verbs = map[string]string{
	http.MethodGet: "list", http.MethodPost: "create", http.MethodPatch: "patch", http.MethodPut: "update",
}

func (b *bridge) count(o *outward, i *inward) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests[verbs[o.method]]++
	if i.err != nil || i.code >= http.StatusBadRequest {
		b.refused++
	}
	b.sent += int64(len(o.body))
}

// send sends a request.
func send(to *http.Client, o *outward) *inward {
	r, err := http.NewRequestWithContext(context.Background(), o.method, o.url, bytes.NewReader(o.body))
	if err != nil {
		return &inward{err: err}
	}
	r.Header = o.header
	response, err := to.Do(r)
	if err != nil {
		return &inward{err: err}
	}
	body, err := io.ReadAll(response.Body)
	return &inward{code: response.StatusCode, header: response.Header, body: body, err: errors.Join(err, response.Body.Close())}
}
