package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/internal/apigroup"
	"github.com/eventseries/eventseries/internal/fakeapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// apiServer serves the Events of a [fakeapi.Server] over HTTP in both API groups, with
// watches.
type apiServer struct {
	fakeapi.Server
	// answer, if set, returns the error of a request, such as "list events.k8s.io shop".
	answer func(request string, opts metav1.ListOptions) *apierrors.StatusError

	mu        sync.Mutex
	changed   *sync.Cond
	log       []change
	compacted int // versions of the log that watches can no longer begin with
	requests  []string
	stop      []context.CancelFunc // of the watches
}

type change struct {
	version int
	event   *eventsv1.Event
	what    watch.EventType
}

// start serves s and returns a client for it.
func (s *apiServer) start(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	s.changed = sync.NewCond(&s.mu)
	s.OnChange = func(_ string, before, after *eventsv1.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		c := change{event: after, what: watch.Modified}
		switch {
		case before == nil:
			c.what = watch.Added
		case after == nil:
			c.what, c.event = watch.Deleted, before.DeepCopy()
			// fakeapi gives a deletion no version of its own. The next change has the
			// following one, so this is greater than all before it.
			c.event.ResourceVersion = strconv.Itoa(s.version())
		}
		var err error
		c.version, err = strconv.Atoi(c.event.ResourceVersion)
		if err != nil {
			panic(err)
		}
		s.log = append(s.log, c)
		s.changed.Broadcast()
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(s.disconnect)
	clients, err := kubernetes.NewForConfig(&restclient.Config{Host: server.URL})
	require.NoError(t, err)
	return clients
}

// version returns the latest version. It requires s.mu.
func (s *apiServer) version() int {
	if len(s.log) == 0 {
		return 0
	}
	return s.log[len(s.log)-1].version
}

// compact makes the server forget all versions so far.
func (s *apiServer) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted = s.version()
}

// disconnect ends the watches.
func (s *apiServer) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stop := range s.stop {
		stop()
	}
	s.stop = nil
	s.changed.Broadcast()
}

// asked returns the requests so far, and forgets them.
func (s *apiServer) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/events")
	path, namespace, _ := strings.Cut(path, "/namespaces/")
	core := path == "/api/v1"
	group := "events.k8s.io"
	if core {
		group = "core"
	}
	query := r.URL.Query()
	opts := metav1.ListOptions{
		FieldSelector: query.Get("fieldSelector"), LabelSelector: query.Get("labelSelector"),
		Continue: query.Get("continue"), ResourceVersion: query.Get("resourceVersion"), Watch: query.Get("watch") != "",
	}
	opts.Limit, _ = strconv.ParseInt(query.Get("limit"), 10, 64)
	verb := "list"
	if opts.Watch {
		verb = "watch"
	}
	request := fmt.Sprintf("%s %s %s", verb, group, namespace)
	s.mu.Lock()
	s.requests = append(s.requests, strings.TrimRight(fmt.Sprintf("%s fields=%s labels=%s limit=%d continue=%s",
		request, opts.FieldSelector, opts.LabelSelector, opts.Limit, opts.Continue), " "))
	s.mu.Unlock()
	if s.answer != nil {
		if err := s.answer(request, opts); err != nil {
			reply(w, int(err.ErrStatus.Code), &err.ErrStatus)
			return
		}
	}
	if core {
		opts.FieldSelector = strings.NewReplacer("involvedObject.", "regarding.", "reportingComponent", "reportingController").Replace(opts.FieldSelector)
	}
	if opts.Watch {
		s.watch(w, r, core, namespace, opts)
		return
	}
	page, err := s.List(r.Context(), namespace, opts)
	if err != nil {
		var refused *apierrors.StatusError
		if !errors.As(err, &refused) {
			return // the client is gone
		}
		reply(w, int(refused.ErrStatus.Code), &refused.ErrStatus)
		return
	}
	page.APIVersion, page.Kind = "events.k8s.io/v1", "EventList"
	if core {
		list := map[string]any{"apiVersion": "v1", "kind": "EventList", "metadata": page.ListMeta}
		items := []any{}
		for i := range page.Items {
			items = append(items, apigroup.ToCore(&page.Items[i]))
		}
		list["items"] = items
		reply(w, http.StatusOK, list)
		return
	}
	reply(w, http.StatusOK, page)
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if status, ok := body.(*metav1.Status); ok {
		status.APIVersion, status.Kind = "v1", "Status"
	}
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err)
	}
}

// watch sends the changes after a version until the client or disconnect ends the watch. It
// ignores selectors.
func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, core bool, namespace string, opts metav1.ListOptions) {
	since, err := strconv.Atoi(opts.ResourceVersion)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(ctx, s.changed.Broadcast)()
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	send := func(what watch.EventType, object runtime.Object) {
		body := map[string]any{"type": what, "object": object}
		if err := json.NewEncoder(w).Encode(body); err == nil {
			w.(http.Flusher).Flush()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = append(s.stop, cancel)
	if since < s.compacted {
		gone := apierrors.NewResourceExpired("too old resource version").ErrStatus
		gone.APIVersion, gone.Kind = "v1", "Status"
		send(watch.Error, &gone)
		return
	}
	next := 0
	for next < len(s.log) && s.log[next].version <= since {
		next++
	}
	for ctx.Err() == nil {
		if next == len(s.log) {
			s.changed.Wait()
			continue
		}
		c := s.log[next]
		next++
		if namespace != "" && namespace != c.event.Namespace {
			continue
		}
		event := c.event.DeepCopy()
		event.APIVersion, event.Kind = "events.k8s.io/v1", "Event"
		if core {
			send(c.what, apigroup.ToCore(event))
		} else {
			send(c.what, event)
		}
	}
}
