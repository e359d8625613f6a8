package bench

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventseries/eventseries/events"
)

// Singles is the cost of events that never recur, from the call until the recorder has
// forgotten them.
type Singles struct {
	Events int    `json:"events"`
	Costs  Costs  `json:"costs"`
	Sent   []Sent `json:"sent"` // in the order of Costs
}

// Sent is what a recorder sends for the events.
type Sent struct {
	Requests int `json:"requests"`
	Bytes    int `json:"bytes"` // of all request bodies
	Kept     int `json:"kept"`  // series that the recorder still tracks an hour later
}

// MeasureSingles measures n events about n objects in virtual time, with the recorder's
// own sink and a real clientset. An event happens every millisecond.
func MeasureSingles(t *testing.T, n, rounds int) Singles {
	t.Helper()
	subjects := references(n)
	names := []string{Ours, ToolsNew, ToolsOld}
	r := Singles{Events: n, Sent: make([]Sent, len(names))}
	var turns []turn
	for i, name := range names {
		turns = append(turns, turn{recorder: name, n: n, run: func(int) {
			synctest.Test(t, func(*testing.T) { r.Sent[i] = emitOnce(name, subjects) })
		}})
	}
	r.Costs = interleave(rounds, turns)
	return r
}

// emitOnce emits an event about each subject, and waits until the recorder has forgotten
// them, at most for an hour.
func emitOnce(name string, subjects []subject) Sent {
	const batch = 100
	e := &echo{}
	r := newProgram(name, clientsOf(e), events.Options{})
	defer r.close()
	for i := range subjects {
		r.eventf(&subjects[i])
		if i%batch == batch-1 {
			time.Sleep(batch * time.Millisecond)
		}
	}
	for begin := time.Now(); r.tracked(len(subjects)) > 0 && time.Since(begin) < time.Hour; {
		time.Sleep(time.Minute)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent.Kept = r.tracked(len(subjects))
	return e.sent
}

// echo is an http.RoundTripper that replaces the network and the server. It returns what
// it receives, so that it costs little.
type echo struct {
	mu   sync.Mutex
	sent Sent
}

// RoundTrip counts and answers a request. A list is empty.
func (e *echo) RoundTrip(r *http.Request) (*http.Response, error) {
	body, contentType := []byte(`{"apiVersion":"events.k8s.io/v1","kind":"EventList","metadata":{},"items":[]}`), "application/json"
	sent := 0
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		must(err)
		contentType, sent = r.Header.Get("Content-Type"), len(body)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent.Requests++
	e.sent.Bytes += sent
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {contentType}},
		Body:       io.NopCloser(bytes.NewReader(body)),
		Request:    r,
	}, nil
}
