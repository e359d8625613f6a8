package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"path"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	clientevents "k8s.io/client-go/tools/events"

	"github.com/eventseries/eventseries/events"
)

// Loop is what a recorder sends for a hot loop: one event about one object, repeated.
type Loop struct {
	Recorder    string        `json:"recorder"`
	Updated     bool          `json:"updated"` // each time, the object has a new resourceVersion
	Every       time.Duration `json:"every"`
	Duration    time.Duration `json:"duration"`
	Occurrences int           `json:"occurrences"`
	Sent        []int         `json:"sent"`     // requests until the end of each minute
	Requests    int           `json:"requests"` // including those after the end of the loop
	Bytes       int           `json:"bytes"`    // of all request bodies
	Hourly      int           `json:"hourly"`   // requests in the second hour
	// Create, Series, Heartbeat and Last are the sizes of bodies: of the first create,
	// of the write that starts the series, of the middle one of the later writes during
	// the loop, and of the last write after it. -1 means none.
	Create    int  `json:"create"`
	Protobuf  bool `json:"protobuf"` // encoding of creates; other bodies are JSON
	Series    int  `json:"series"`
	Heartbeat int  `json:"heartbeat"`
	Last      int  `json:"last"`
	// Stored is the size of an Event at the end as protobuf, without managedFields. If
	// there are several Events, it is the mean.
	Stored int `json:"stored"`
}

// MeasureLoop records a hot loop in virtual time, with the recorder's own sink and a
// real clientset.
func MeasureLoop(t *testing.T, name string, updated bool, every, duration time.Duration) Loop {
	t.Helper()
	var sent []request
	occurrences, stored := 0, 0
	synctest.Test(t, func(*testing.T) {
		w := &wire{began: time.Now(), events: make(map[string][]byte)}
		r := newProgram(name, clientsOf(w), events.Options{})
		s := newSubject("typed", false, 1)
		pod, _ := s.regarding.Object.(*corev1.Pod)
		for time.Since(w.began) < duration {
			if updated {
				pod.ResourceVersion = fmt.Sprint(4711 + occurrences)
			}
			r.eventf(&s)
			occurrences++
			time.Sleep(every)
		}
		time.Sleep(20 * time.Minute) // these requests count, too
		sent, stored = w.sent(), w.stored()
		r.close()
	})
	l := Loop{Recorder: name, Updated: updated, Every: every, Duration: duration, Occurrences: occurrences, Stored: stored}
	l.count(sent)
	return l
}

// newProgram starts a recorder that writes to a server. The options are those of ours.
func newProgram(name string, clients kubernetes.Interface, opts events.Options) recorder {
	switch name {
	case Ours:
		return newOurs(&events.EventSinkImpl{Interface: clients.EventsV1()}, opts)
	case ToolsNew:
		return newToolsEvents(&clientevents.EventSinkImpl{Interface: clients.EventsV1()})
	default:
		return newToolsRecord(&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events("")})
	}
}

// count computes the results from the requests, including the list of earlier Events.
func (l *Loop) count(sent []request) {
	l.Sent = make([]int, int(l.Duration/time.Minute)+1)
	l.Create, l.Series, l.Heartbeat, l.Last = -1, -1, -1, -1
	var heartbeats []int
	for _, r := range sent {
		l.Requests++
		l.Bytes += r.body
		for m := int(math.Ceil(r.at.Minutes())); m < len(l.Sent); m++ {
			l.Sent[m]++
		}
		if hour := r.at / time.Hour; hour == 1 && r.at < l.Duration {
			l.Hourly++
		}
		switch {
		case r.method == http.MethodPost && l.Create < 0:
			l.Create, l.Protobuf = r.body, !r.json
		case r.method != http.MethodPatch:
		case l.Series < 0:
			l.Series = r.body
		case r.at < l.Duration:
			heartbeats = append(heartbeats, r.body)
		}
		if r.at >= l.Duration && r.method == http.MethodPatch {
			l.Last = r.body
		}
	}
	if len(heartbeats) > 0 {
		l.Heartbeat = heartbeats[len(heartbeats)/2]
	}
}

// wire is an http.RoundTripper that replaces the network and the server. It stores
// Events and applies all patches as merge patches, which for the fields of Events
// equal strategic merge patches.
type wire struct {
	mu       sync.Mutex
	began    time.Time
	events   map[string][]byte // by path
	version  int
	requests []request
}

type request struct {
	method string
	at     time.Duration
	body   int // bytes
	json   bool
}

// clientsOf returns a clientset without a rate limit that sends its requests to a
// transport.
func clientsOf(to http.RoundTripper) kubernetes.Interface {
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: "http://server.example", Transport: to, QPS: -1})
	must(err)
	return clients
}

// sent returns the requests so far.
func (w *wire) sent() []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

// stored returns the mean size of the Events.
func (w *wire) stored() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	size := 0
	for _, event := range w.events {
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(event, nil, nil)
		must(err)
		size += o.(interface{ Size() int }).Size()
	}
	return size / len(w.events)
}

// RoundTrip records and answers a request.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		must(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, request{method: r.Method, at: time.Since(w.began), body: len(body), json: json.Valid(body)})
	answer, code := w.answer(r.Method, r.URL.Path, body)
	return &http.Response{
		StatusCode: code,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(bytes.NewReader(answer)),
		Request:    r,
	}, nil
}

func (w *wire) answer(method, at string, body []byte) (answer []byte, code int) {
	switch method {
	case http.MethodGet:
		return []byte(`{"apiVersion":"events.k8s.io/v1","kind":"EventList","metadata":{},"items":[]}`), http.StatusOK
	case http.MethodPost:
		// Typed clients send protobuf by default.
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		must(err)
		object, err := meta.Accessor(o)
		must(err)
		answer, err = json.Marshal(o)
		must(err)
		return w.store(path.Join(at, object.GetName()), answer), http.StatusCreated
	case http.MethodPatch:
		event, ok := w.events[at]
		if !ok {
			return []byte(`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`), http.StatusNotFound
		}
		answer, err := jsonpatch.MergePatch(event, body)
		must(err)
		return w.store(at, answer), http.StatusOK
	default:
		panic("bench: unexpected " + method)
	}
}

// store stores an Event with a resourceVersion as long as in a cluster in use.
func (w *wire) store(at string, event []byte) []byte {
	w.version++
	event, err := jsonpatch.MergePatch(event, fmt.Appendf(nil, `{"metadata":{"resourceVersion":"%d"}}`, 100_000_000+w.version))
	must(err)
	w.events[at] = event
	return event
}
