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
	"k8s.io/client-go/rest"
)

// Requests counts the requests of a client by verb and resource. It is safe for
// concurrent use.
type Requests struct {
	mu     sync.Mutex
	counts map[string]int // by "verb resource"
}

// CountRequests makes the clients of a configuration count their requests.
func CountRequests(config *rest.Config) *Requests {
	r := &Requests{counts: map[string]int{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if verb, resource, ok := describe(req); ok {
				r.mu.Lock()
				r.counts[verb+" "+resource]++
				r.mu.Unlock()
			}
			return next.RoundTrip(req)
		})
	})
	return r
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Count returns the number of requests with an RBAC verb (get, list, create,
// update, patch, delete) for a resource as kubectl writes it: "configmaps",
// "events.events.k8s.io". A request counts even if it gets no response.
func (r *Requests) Count(verb, resource string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[verb+" "+resource]
}

// Total returns the number of requests for any resource.
func (r *Requests) Total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	total := 0
	for _, n := range r.counts {
		total += n
	}
	return total
}

// Reset sets all counts to zero.
func (r *Requests) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.counts)
}

// String returns the counts, for example "create pods: 1, patch pods: 2".
func (r *Requests) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, key := range slices.Sorted(maps.Keys(r.counts)) {
		list = append(list, fmt.Sprintf("%s: %d", key, r.counts[key]))
	}
	return strings.Join(list, ", ")
}

// describe returns the verb and the resource of a request, and false if the
// request is not for a resource, such as discovery or a health check.
func describe(req *http.Request) (verb, resource string, ok bool) {
	path := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	group := ""
	switch {
	case len(path) >= 3 && path[0] == "api":
		path = path[2:]
	case len(path) >= 4 && path[0] == "apis":
		group = "." + path[1]
		path = path[3:]
	default:
		return "", "", false
	}
	if path[0] == "namespaces" && len(path) > 2 {
		path = path[2:]
	}
	verb = map[string]string{http.MethodPost: "create", http.MethodPut: "update"}[req.Method]
	switch {
	case verb != "":
	case req.Method == http.MethodGet && len(path) == 1:
		verb = "list"
	default:
		verb = strings.ToLower(req.Method)
	}
	return verb, path[0] + group, true
}

func TestDescribe(t *testing.T) {
	for request, want := range map[string]string{
		"GET /api/v1/pods":                                       "list pods",
		"GET /api/v1/namespaces/ns/pods/p":                       "get pods",
		"GET /api/v1/namespaces":                                 "list namespaces",
		"GET /api/v1/namespaces/ns":                              "get namespaces",
		"PUT /apis/coordination.k8s.io/v1/namespaces/n/leases/l": "update leases.coordination.k8s.io",
		"POST /apis/events.k8s.io/v1/namespaces/ns/events":       "create events.events.k8s.io",
		"PATCH /apis/events.k8s.io/v1/namespaces/ns/events/e":    "patch events.events.k8s.io",
		"DELETE /api/v1/namespaces/ns/events/e":                  "delete events",
		"GET /readyz":                                            "",
		"GET /api/v1":                                            "",
		"GET /apis/events.k8s.io/v1":                             "",
	} {
		method, url, _ := strings.Cut(request, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, "https://server"+url, nil)
		require.NoError(t, err)
		verb, resource, ok := describe(req)
		assert.Equal(t, want != "", ok, request)
		assert.Equal(t, want, strings.TrimSpace(verb+" "+resource), request)
	}
}
