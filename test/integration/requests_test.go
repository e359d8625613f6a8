package integration

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// Requests counts the requests of a client by verb and resource. It may be used
// from several goroutines.
type Requests struct {
	mu     sync.Mutex
	counts map[string]int // by "verb resource"
}

// CountRequests makes the clients of a configuration count their requests.
func CountRequests(config *rest.Config) *Requests {
	r := &Requests{counts: map[string]int{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return countingTransport{requests: r, next: next}
	})
	return r
}

// Count returns the number of requests with a verb of RBAC's (get, list, watch,
// create, update, patch, delete, deletecollection) for a resource as kubectl
// writes it: "pods", "pods/status", "events.events.k8s.io".
func (r *Requests) Count(verb, resource string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[verb+" "+resource]
}

// Total returns the number of requests for resources of any kind.
func (r *Requests) Total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	total := 0
	for _, n := range r.counts {
		total += n
	}
	return total
}

// Reset begins to count at zero.
func (r *Requests) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.counts)
}

// String lists the counts, for messages.
func (r *Requests) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, key := range slices.Sorted(maps.Keys(r.counts)) {
		list = append(list, fmt.Sprintf("%s: %d", key, r.counts[key]))
	}
	return strings.Join(list, ", ")
}

// countingTransport counts what passes through it, answered or not.
type countingTransport struct {
	requests *Requests
	next     http.RoundTripper
}

func (c countingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if verb, resource, ok := describe(req); ok {
		c.requests.mu.Lock()
		c.requests.counts[verb+" "+resource]++
		c.requests.mu.Unlock()
	}
	return c.next.RoundTrip(req)
}

// describe returns the verb and the resource of a request. It reports false for
// one that is not about resources, such as discovery or a health check.
func describe(req *http.Request) (verb, resource string, ok bool) {
	path := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	group := ""
	switch {
	case len(path) >= 3 && path[0] == "api":
		path = path[2:]
	case len(path) >= 4 && path[0] == "apis":
		group = path[1]
		path = path[3:]
	default:
		return "", "", false
	}
	// What follows namespaces/NAME is a resource in it, unless it is a
	// subresource of the namespace.
	if path[0] == "namespaces" && len(path) > 2 && path[2] != "status" && path[2] != "finalize" {
		path = path[2:]
	}
	resource = path[0]
	if group != "" {
		resource += "." + group
	}
	if len(path) > 2 {
		resource += "/" + path[2]
	}
	return verbOf(req, len(path) > 1), resource, true
}

func verbOf(req *http.Request, named bool) string {
	switch {
	case req.Method == http.MethodGet && named:
		return "get"
	case req.Method == http.MethodGet && req.URL.Query().Get("watch") != "":
		return "watch"
	case req.Method == http.MethodGet:
		return "list"
	case req.Method == http.MethodPost:
		return "create"
	case req.Method == http.MethodPut:
		return "update"
	case req.Method == http.MethodDelete && !named:
		return "deletecollection"
	default:
		return strings.ToLower(req.Method)
	}
}

func TestDescribe(t *testing.T) {
	for request, want := range map[string]string{
		"GET /api/v1/pods":                                       "list pods",
		"GET /api/v1/pods?watch=1":                               "watch pods",
		"GET /api/v1/namespaces/ns/pods/p":                       "get pods",
		"PUT /api/v1/namespaces/ns/pods/p/status":                "update pods/status",
		"POST /apis/events.k8s.io/v1/namespaces/ns/events":       "create events.events.k8s.io",
		"PATCH /apis/events.k8s.io/v1/namespaces/ns/events/e":    "patch events.events.k8s.io",
		"DELETE /apis/events.k8s.io/v1/namespaces/ns/events":     "deletecollection events.events.k8s.io",
		"DELETE /api/v1/namespaces/ns":                           "delete namespaces",
		"PUT /api/v1/namespaces/ns/finalize":                     "update namespaces/finalize",
		"GET /api/v1/namespaces":                                 "list namespaces",
		"GET /apis/coordination.k8s.io/v1/namespaces/n/leases/l": "get leases.coordination.k8s.io",
		"GET /readyz":                 "",
		"GET /api/v1":                 "",
		"GET /apis/events.k8s.io/v1":  "",
		"GET /openapi/v3/apis/apps/v": "",
	} {
		method, url, _ := strings.Cut(request, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, "https://server"+url, nil)
		require.NoError(t, err)
		verb, resource, ok := describe(req)
		assert.Equal(t, want != "", ok, request)
		assert.Equal(t, want, strings.TrimSpace(verb+" "+resource), request)
	}
}

func TestCountRequests(t *testing.T) {
	config := apiserver.Config(t)
	requests := CountRequests(config)
	clients := apiserver.ClientsetFor(t, config)
	for range 3 {
		_, err := clients.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
	}
	_, err := clients.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, 3, requests.Count("list", "events.events.k8s.io"))
	assert.Equal(t, 4, requests.Total())
	assert.Equal(t, "get namespaces: 1, list events.events.k8s.io: 3", requests.String())
	requests.Reset()
	assert.Zero(t, requests.Total())
}
