package integration

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// requests records the requests of a client. It is safe for concurrent use.
type requests struct {
	mu   sync.Mutex
	list []*exchange
}

type exchange struct {
	verb     string // as in RBAC: get, list, create, patch, delete
	resource string // as kubectl writes it: "configmaps", "events.events.k8s.io"
	sent     time.Time

	// Without a response, the others are zero.
	answered   time.Time
	code       int
	retryAfter string // the header
	route      route
}

// route is the FlowSchema and the priority level that the server chose.
type route struct{ schema, level types.UID }

func routeOf(header http.Header) route {
	return route{
		schema: types.UID(header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)),
		level:  types.UID(header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)),
	}
}

// recordRequests records the requests of the clients of a configuration.
func recordRequests(config *rest.Config) *requests {
	r := &requests{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			verb, resource, ok := describe(req)
			if !ok {
				return next.RoundTrip(req)
			}
			x := &exchange{verb: verb, resource: resource, sent: time.Now()}
			r.mu.Lock()
			r.list = append(r.list, x)
			r.mu.Unlock()
			response, err := next.RoundTrip(req)
			if err == nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				x.answered, x.code = time.Now(), response.StatusCode
				x.retryAfter, x.route = response.Header.Get("Retry-After"), routeOf(response.Header)
			}
			return response, err
		})
	})
	return r
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (r *requests) all() []exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []exchange
	for _, x := range r.list {
		all = append(all, *x)
	}
	return all
}

func (r *requests) total() int { return len(r.all()) }

func (r *requests) count(verb, resource string) int {
	n := 0
	for _, x := range r.all() {
		if x.verb == verb && x.resource == resource {
			n++
		}
	}
	return n
}

func (r *requests) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = nil
}

// String returns the counts, for example "create pods: 1, patch pods: 2".
func (r *requests) String() string {
	counts := map[string]int{}
	for _, x := range r.all() {
		counts[x.verb+" "+x.resource]++
	}
	var list []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s: %d", key, counts[key]))
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
	verb = strings.ToLower(req.Method)
	switch {
	case req.Method == http.MethodPost:
		verb = "create"
	case req.Method == http.MethodGet && len(path) == 1:
		verb = "list"
	}
	return verb, path[0] + group, true
}
