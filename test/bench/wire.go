package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// wire is an http.RoundTripper that replaces the network and the server. It stores
// Events and applies all patches as merge patches, which for the fields of Events
// equal strategic merge patches.
type wire struct {
	mu       sync.Mutex
	began    time.Time
	events   map[string][]byte // by path
	requests []request
}

type request struct {
	verb string
	at   time.Duration
	body int // bytes
	json bool
}

func newWire() *wire {
	return &wire{began: time.Now(), events: make(map[string][]byte)}
}

// clients returns a clientset that writes to w without a rate limit.
func (w *wire) clients() kubernetes.Interface {
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: "http://server.example", Transport: w, QPS: -1})
	must(err)
	return clients
}

// sent returns the requests so far.
func (w *wire) sent() []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

// RoundTrip records and answers a request.
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
	verb := map[string]string{http.MethodPost: "create", http.MethodPatch: "patch", http.MethodGet: "list"}[r.Method]
	w.requests = append(w.requests, request{verb: verb, at: time.Since(w.began), body: len(body), json: json.Valid(body)})
	answer, code, err := w.answer(verb, r.URL.Path, body)
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

func (w *wire) answer(verb, at string, body []byte) (answer []byte, code int, err error) {
	switch verb {
	case "list":
		return []byte(`{"apiVersion":"events.k8s.io/v1","kind":"EventList","metadata":{},"items":[]}`), http.StatusOK, nil
	case "create":
		// Typed clients send protobuf by default.
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil, 0, err
		}
		object, err := meta.Accessor(o)
		if err != nil {
			return nil, 0, err
		}
		answer, err = json.Marshal(o)
		w.events[path.Join(at, object.GetName())] = answer
		return answer, http.StatusCreated, err
	case "patch":
		event, ok := w.events[at]
		if !ok {
			return []byte(`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`), http.StatusNotFound, nil
		}
		answer, err = jsonpatch.MergePatch(event, body)
		w.events[at] = answer
		return answer, http.StatusOK, err
	default:
		return nil, 0, fmt.Errorf("unexpected verb")
	}
}
