package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// wire takes the place of the network and a server: clients of Kubernetes write to it
// what they would send. It keeps Events by their paths, and does to them what a merge
// patch says; with series, counts and annotations a strategic one says the same.
type wire struct {
	mu       sync.Mutex
	began    time.Time
	events   map[string][]byte // by path
	requests []request
}

// request is one that was sent.
type request struct {
	verb string
	at   time.Duration
	body int // bytes
	json bool
}

func newWire() *wire {
	return &wire{began: time.Now(), events: make(map[string][]byte)}
}

// clients returns a clientset that writes to w and holds nothing back.
func (w *wire) clients() kubernetes.Interface {
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: "http://server.example", Transport: w, QPS: -1})
	must(err)
	return clients
}

// all returns the requests so far.
func (w *wire) all() []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]request(nil), w.requests...)
}

// RoundTrip answers a request.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, request{verb: verbs[r.Method], at: time.Since(w.began), body: len(body), json: json.Valid(body)})
	answer, code, err := w.answer(r, body)
	if err != nil {
		return nil, fmt.Errorf("bench: %s %s: %w", r.Method, r.URL.Path, err)
	}
	return &http.Response{
		StatusCode: code,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(bytes.NewReader(answer)),
		Request:    r,
	}, nil
}

var verbs = map[string]string{http.MethodPost: "create", http.MethodPatch: "patch", http.MethodGet: "list"}

func (w *wire) answer(r *http.Request, body []byte) (answer []byte, code int, err error) {
	switch r.Method {
	case http.MethodGet:
		return []byte(`{"apiVersion":"events.k8s.io/v1","kind":"EventList","metadata":{},"items":[]}`), http.StatusOK, nil
	case http.MethodPost:
		// Typed clients send protobuf, unless they are told not to.
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil, 0, err
		}
		event, err := json.Marshal(o)
		if err != nil {
			return nil, 0, err
		}
		meta, err := meta.Accessor(o)
		if err != nil {
			return nil, 0, err
		}
		w.events[path.Join(r.URL.Path, meta.GetName())] = event
		return event, http.StatusCreated, nil
	case http.MethodPatch:
		event, ok := w.events[r.URL.Path]
		if !ok {
			return []byte(`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`), http.StatusNotFound, nil
		}
		event, err := jsonpatch.MergePatch(event, body)
		if err != nil {
			return nil, 0, err
		}
		w.events[r.URL.Path] = event
		return event, http.StatusOK, nil
	default:
		return nil, 0, errors.New("nobody should send that")
	}
}
