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

// flood is how many requests are made at a time to fill a server that has 40
// seats: its priority level for events has room for one and 100 in its queues.
const flood = 90

// TestFlowControlManifest applies docs/flowcontrol and has a recorder's requests
// sorted by it. When events flood the server, they fill their own priority level
// and no other: without the manifest they do.
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
		apiserver.Eventually(t, patience, func(ctx context.Context) error {
			return atLeast(ctx, admin, "apiserver_flowcontrol_current_inqueue_requests", `priority_level="workload-low"`, 10)
		})
		assert.Error(t, reconciles(2*time.Second), "events have the seats")
	})

	schema, level := applyFlowControl(t, admin)
	newProbe(t, a.config(config), eventsURL).wait(t, http.StatusNotFound, func(header http.Header) error {
		if uid := header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID); uid != string(schema) {
			return fmt.Errorf("flow schema %q, not %q", uid, schema)
		}
		return nil
	})

	own := a.config(config)
	sorted := logSorting(own)
	r := newRecording(t, own, events.Options{Namespaces: []string{""}})
	r.clients = admin
	recorder := r.recorder()
	r.start(t)
	pod := podIn(namespace, "looping")
	emit(recorder, pod, 1)
	r.flush(t)
	emit(recorder, pod, 1)
	r.flush(t)
	apiserver.Eventually(t, patience, func(context.Context) error { return sorted.has("list", "create", "patch") })
	sorted.requireAll(t, schema, level)
	dispatched, err := serverMetric(t.Context(), admin, "apiserver_flowcontrol_dispatched_requests_total", `flow_schema="eventseries"`)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, dispatched, 3.0)
	others := logSorting(own)
	require.NoError(t, reconcile(t, own, namespace, patience))
	others.requireNone(t, schema, level)

	t.Run("with", func(t *testing.T) {
		release := holdSeats(t, a.config(config), eventsURL, flood)
		defer release()
		const own = `priority_level="eventseries"`
		apiserver.Eventually(t, patience, func(ctx context.Context) error {
			return atLeast(ctx, admin, "apiserver_flowcontrol_current_inqueue_requests", own, 10)
		})
		seats, err := serverMetric(t.Context(), admin, "apiserver_flowcontrol_current_executing_seats", own)
		require.NoError(t, err)
		limit, err := serverMetric(t.Context(), admin, "apiserver_flowcontrol_current_limit_seats", own)
		require.NoError(t, err)
		assert.LessOrEqual(t, seats, limit)
		emit(recorder, podIn(namespace, "late"), 3) // has to wait
		for range 20 {
			require.NoError(t, reconciles(patience))
		}
	})
	r.flush(t)
	assert.Len(t, r.written(t), 2)
	r.requireAccounted(t, 5)
}

// applyFlowControl creates what docs/flowcontrol says.
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

// reconcile is what a controller does beside emitting events.
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

// serverMetric returns the sum of a metric of the API server over the series that
// have a label.
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

// sorting notes by which FlowSchema and priority level the server went, for each
// verb.
type sorting struct {
	mu   sync.Mutex
	seen map[string][][2]types.UID
}

// logSorting has the clients of a configuration note how the server sorts their
// requests.
func logSorting(config *rest.Config) *sorting {
	s := &sorting{seen: make(map[string][][2]types.UID)}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(req)
			if err == nil {
				verb, _, _ := describe(req)
				s.mu.Lock()
				defer s.mu.Unlock()
				s.seen[verb] = append(s.seen[verb], [2]types.UID{
					types.UID(response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)),
					types.UID(response.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)),
				})
			}
			return response, err
		})
	})
	return s
}

// roundTripper is a function that is one.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// has returns an error unless there were requests with these verbs.
func (s *sorting) has(verbs ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, verb := range verbs {
		if len(s.seen[verb]) == 0 {
			return fmt.Errorf("no %s yet", verb)
		}
	}
	return nil
}

// requireAll fails the test unless all requests were sorted like this.
func (s *sorting) requireAll(t *testing.T, schema, level types.UID) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for verb, seen := range s.seen {
		for _, uids := range seen {
			require.Equal(t, [2]types.UID{schema, level}, uids, verb)
		}
	}
}

// requireNone fails the test if a request was sorted like this, or there was none.
func (s *sorting) requireNone(t *testing.T, schema, level types.UID) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(t, s.seen)
	for verb, seen := range s.seen {
		for _, uids := range seen {
			require.NotEqual(t, schema, uids[0], verb)
			require.NotEqual(t, level, uids[1], verb)
		}
	}
}
