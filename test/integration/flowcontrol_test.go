package integration

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// flood is the number of concurrent requests that fill a server of 40 seats. Its
// priority level for events has one seat, and queues for 100 requests.
const flood = 90

// TestFlowControlManifest applies docs/flowcontrol. A flood of events then fills
// its own priority level and no other; without the manifest it fills others.
func TestFlowControlManifest(t *testing.T) {
	t.Parallel()
	server := apiserver.Start(t, controlplane.Options{
		ExtraArgs: []string{"--", "--max-requests-inflight=20", "--max-mutating-requests-inflight=20"},
	})
	config := apiserver.ConfigOf(t, server)
	admin := apiserver.ClientsetFor(t, config)
	_, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: manifestNamespace},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	a := account{namespace: manifestNamespace}
	a.grant(t, admin, mayWrite, mayList)
	grant(t, admin, "reconciler", []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace, Name: manifestAccount}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create"}})
	namespace := apiserver.NamespaceOn(t, admin)
	eventsURL := "/apis/events.k8s.io/v1/namespaces/" + namespace + "/events"
	reconciles := func(within time.Duration) error { return reconcile(t, a.config(config), namespace, within) }
	require.NoError(t, reconciles(patience))

	t.Run("without", func(t *testing.T) {
		release := holdSeats(t, a.config(config), eventsURL, flood)
		defer release()
		eventually(t, func(ctx context.Context) error {
			return atLeast(ctx, admin, "apiserver_flowcontrol_current_inqueue_requests", `priority_level="workload-low"`, 10)
		})
		assert.Error(t, reconciles(2*time.Second), "events occupy the seats")
	})

	schema, level := applyFlowControl(t, admin)
	newProbe(t, a.config(config), eventsURL).await(t, http.StatusNotFound, schema)

	own := a.config(config)
	routes := logRoutes(own)
	r := newRecording(t, own, events.Options{Namespaces: []string{""}})
	r.clients = admin
	recorder := r.recorder()
	r.start(t)
	pod := podIn(namespace, "looping")
	emit(recorder, pod, 1)
	r.flush(t)
	emit(recorder, pod, 1)
	r.flush(t)
	eventually(t, func(context.Context) error { return routes.has("list", "create", "patch") })
	routes.requireAll(t, route{schema, level})
	dispatched, err := serverMetric(t.Context(), admin, "apiserver_flowcontrol_dispatched_requests_total", `flow_schema="eventseries"`)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, dispatched, 3.0)
	others := logRoutes(own)
	require.NoError(t, reconcile(t, own, namespace, patience))
	others.requireNone(t, route{schema, level})

	t.Run("with", func(t *testing.T) {
		release := holdSeats(t, a.config(config), eventsURL, flood)
		defer release()
		const own = `priority_level="eventseries"`
		eventually(t, func(ctx context.Context) error {
			return atLeast(ctx, admin, "apiserver_flowcontrol_current_inqueue_requests", own, 10)
		})
		seats, err := serverMetric(t.Context(), admin, "apiserver_flowcontrol_current_executing_seats", own)
		require.NoError(t, err)
		limit, err := serverMetric(t.Context(), admin, "apiserver_flowcontrol_current_limit_seats", own)
		require.NoError(t, err)
		assert.LessOrEqual(t, seats, limit)
		emit(recorder, podIn(namespace, "late"), 3) // waits for a seat
		for range 20 {
			require.NoError(t, reconciles(patience))
		}
	})
	r.flush(t)
	assert.Len(t, r.written(t), 2)
	r.requireAccounted(t, 5)
}

// applyFlowControl applies docs/flowcontrol.
func applyFlowControl(t *testing.T, admin kubernetes.Interface) (schema, level types.UID) {
	t.Helper()
	for _, object := range readManifests(t, "flowcontrol/events.yaml") {
		switch o := object.(type) {
		case *flowcontrolv1.PriorityLevelConfiguration:
			created, err := admin.FlowcontrolV1().PriorityLevelConfigurations().Create(t.Context(), o, metav1.CreateOptions{})
			require.NoError(t, err)
			level = created.UID
		case *flowcontrolv1.FlowSchema:
			created, err := admin.FlowcontrolV1().FlowSchemas().Create(t.Context(), o, metav1.CreateOptions{})
			require.NoError(t, err)
			schema = created.UID
		default:
			require.Failf(t, "unexpected manifest", "%T", object)
		}
	}
	require.NotEmpty(t, schema)
	require.NotEmpty(t, level)
	return schema, level
}

// reconcile makes a request of a controller that is not about events.
func reconcile(t *testing.T, config *rest.Config, namespace string, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	clients, err := kubernetes.NewForConfigAndClient(config, client)
	require.NoError(t, err)
	_, err = clients.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "reconciled-"},
	}, metav1.CreateOptions{})
	return err
}

// serverMetric returns the sum of a metric of the API server over all series with
// a label.
func serverMetric(ctx context.Context, admin kubernetes.Interface, name, label string) (sum float64, err error) {
	text, err := admin.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	found := false
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, name+"{") || !strings.Contains(line, label) {
			continue
		}
		var value float64
		if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &value); err != nil {
			return 0, fmt.Errorf("%q: %w", line, err)
		}
		sum += value
		found = true
	}
	if !found {
		return 0, fmt.Errorf("no metric %s with %s", name, label)
	}
	return sum, lines.Err()
}

func atLeast(ctx context.Context, admin kubernetes.Interface, name, label string, want float64) error {
	got, err := serverMetric(ctx, admin, name, label)
	if err == nil && got < want {
		return fmt.Errorf("%s{%s} is %v", name, label, got)
	}
	return err
}

// route is the FlowSchema and the priority level of a request.
type route struct{ schema, level types.UID }

// routes are the routes of the requests of a client, by verb.
type routes struct {
	mu   sync.Mutex
	seen map[string][]route
}

// logRoutes records the routes of the clients of a configuration.
func logRoutes(config *rest.Config) *routes {
	s := &routes{seen: make(map[string][]route)}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(req)
			if err == nil {
				verb, _, _ := describe(req)
				s.mu.Lock()
				defer s.mu.Unlock()
				s.seen[verb] = append(s.seen[verb], route{
					schema: types.UID(response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)),
					level:  types.UID(response.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)),
				})
			}
			return response, err
		})
	})
	return s
}

// has returns an error unless there were requests with all these verbs.
func (s *routes) has(verbs ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, verb := range verbs {
		if len(s.seen[verb]) == 0 {
			return fmt.Errorf("no %s yet", verb)
		}
	}
	return nil
}

// requireAll fails the test unless all requests had this route.
func (s *routes) requireAll(t *testing.T, want route) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for verb, seen := range s.seen {
		for _, got := range seen {
			require.Equal(t, want, got, verb)
		}
	}
}

// requireNone fails the test if a request had this FlowSchema or priority level,
// or if there was none.
func (s *routes) requireNone(t *testing.T, unwanted route) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(t, s.seen)
	for verb, seen := range s.seen {
		for _, got := range seen {
			require.NotEqual(t, unwanted.schema, got.schema, verb)
			require.NotEqual(t, unwanted.level, got.level, verb)
		}
	}
}
