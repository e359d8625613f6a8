package bench

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// bridge is an http.RoundTripper for a testing/synctest bubble. It sends requests from
// goroutines outside the bubble, so that they reach a real server, and counts them.
// Virtual time stands still while a request is in flight, because its sender waits for
// a channel from outside. So for the recorders the server is infinitely fast.
type bridge struct {
	lanes chan lane // that are free
	stop  func()    // closes idle lanes and waits for them

	mu      sync.Mutex
	traffic traffic
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
	wire   int // bytes of the body as received, compressed or not
	err    error
}

// traffic is what clients exchange with a server.
type traffic struct {
	verbs   map[string]Traffic
	minutes []int // requests in each virtual minute
}

// Traffic is the traffic of a verb.
type Traffic struct {
	Requests int   `json:"requests"`
	Refused  int   `json:"refused"`  // of the requests
	Protobuf int   `json:"protobuf"` // requests with a body that is protobuf
	Sent     int64 `json:"sent"`     // bytes of request bodies
	Received int64 `json:"received"` // bytes of response bodies
}

// newBridge returns a bridge to a server with the given number of lanes. It must be
// called outside the bubble. The caller must call stop after the bubble.
func newBridge(to *http.Client, lanes int) *bridge {
	b := &bridge{lanes: make(chan lane, lanes), traffic: traffic{verbs: make(map[string]Traffic)}}
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

// from returns an http.RoundTripper that counts the requests per minute since began.
func (b *bridge) from(began time.Time) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		minute := int(time.Since(began) / time.Minute)
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
		b.count(o, i, minute)
		if i.err != nil {
			return nil, i.err
		}
		return &http.Response{
			StatusCode: i.code, Header: i.header, Body: io.NopCloser(bytes.NewReader(i.body)), ContentLength: int64(len(i.body)),
			Proto: "HTTP/2.0", ProtoMajor: 2, Request: r,
		}, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var verbs = map[string]string{
	http.MethodGet: "list", http.MethodPost: "create", http.MethodPatch: "patch", http.MethodPut: "update",
}

func (b *bridge) count(o *outward, i *inward, minute int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &b.traffic
	verb := verbs[o.method]
	v := t.verbs[verb]
	v.Requests++
	if i.err != nil || i.code >= http.StatusBadRequest {
		v.Refused++
	}
	if strings.HasPrefix(o.header.Get("Content-Type"), runtime.ContentTypeProtobuf) {
		v.Protobuf++
	}
	v.Sent += int64(len(o.body))
	v.Received += int64(i.wire)
	t.verbs[verb] = v
	for len(t.minutes) <= minute {
		t.minutes = append(t.minutes, 0)
	}
	t.minutes[minute]++
}

// send sends a request like the default transport of a client, which accepts
// compressed responses.
func send(to *http.Client, o *outward) *inward {
	r, err := http.NewRequestWithContext(context.Background(), o.method, o.url, bytes.NewReader(o.body))
	if err != nil {
		return &inward{err: err}
	}
	r.Header = o.header
	if r.Header.Get("Accept-Encoding") == "" {
		r.Header.Set("Accept-Encoding", "gzip")
	}
	response, err := to.Do(r)
	if err != nil {
		return &inward{err: err}
	}
	body, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	i := &inward{code: response.StatusCode, header: response.Header, body: body, wire: len(body), err: err}
	if err == nil && i.header.Get("Content-Encoding") == "gzip" {
		i.header.Del("Content-Encoding")
		i.header.Del("Content-Length")
		var unzip *gzip.Reader
		if unzip, i.err = gzip.NewReader(bytes.NewReader(body)); i.err == nil {
			i.body, i.err = io.ReadAll(unzip)
		}
	}
	return i
}
