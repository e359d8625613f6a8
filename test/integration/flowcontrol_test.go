package integration

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
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
	apiserver.Since(t, 29, "lacks flowcontrol.apiserver.k8s.io/v1")
	server := apiserver.Start(t, controlplane.Options{
		ExtraArgs: []string{"--", "--max-requests-inflight=20", "--max-mutating-requests-inflight=20"},
	})
	config := apiserver.ConfigOf(t, server)
	admin := apiserver.ClientsetFor(t, config)
	apiserver.CreateNamespace(t, admin, manifestNamespace)
	a := account{namespace: manifestNamespace}
	a.grant(t, admin, mayWrite, mayList)
	grant(t, admin, "reconciler", []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace, Name: manifestAccount}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create"}})
	namespace := apiserver.NamespaceOn(t, admin)
	eventsURL := "/apis/events.k8s.io/v1/namespaces/" + namespace + "/events"
	reconciles := func(within time.Duration) error { return reconcile(t, a.config(config), namespace, within) }
	require.NoError(t, reconciles(patience))

	t.Run("without the manifest", func(t *testing.T) {
		release := holdSeats(t, a.config(config), eventsURL, flood)
		defer release()
		eventually(t, func(c *assert.CollectT) {
			assert.GreaterOrEqual(c, serverMetric(c, admin, "current_inqueue_requests", "priority_level", "workload-low"), 10.0)
		})
		assert.Error(t, reconciles(2*time.Second), "events occupy the seats")
	})

	schema, level := applyFlowControl(t, admin)
	awaitRoute(t, a.config(config), eventsURL, schema)
	awaitRoute(t, a.config(config), "/api/v1/namespaces/"+namespace+"/events", schema) // of compat/record and compat.NewSink

	own := a.config(config)
	r := newRecording(t, eventsSink, own, events.Options{Namespaces: []string{""}})
	r.clients = admin
	recorder := r.recorder()
	r.start(t)
	pod := podIn(namespace, "looping")
	emit(recorder, pod, 1)
	r.flush(t)
	emit(recorder, pod, 1)
	r.flush(t)
	eventually(t, func(c *assert.CollectT) { assert.Equal(c, 1, r.writes("list", "written")) })
	for _, verb := range []string{"list", "create", "patch"} {
		assert.Positive(t, r.requests.count(verb, eventsResource), verb)
	}
	for _, x := range r.requests.all() {
		require.Equal(t, route{schema, level}, x.route, x.verb)
	}
	assert.GreaterOrEqual(t, serverMetric(t, admin, "dispatched_requests_total", "flow_schema", "eventseries"), 3.0)
	others := recordRequests(own)
	require.NoError(t, reconcile(t, own, namespace, patience))
	require.NotEmpty(t, others.all())
	for _, x := range others.all() {
		require.NotEqual(t, schema, x.route.schema, x.verb)
		require.NotEqual(t, level, x.route.level, x.verb)
	}

	t.Run("with the manifest", func(t *testing.T) {
		release := holdSeats(t, a.config(config), eventsURL, flood)
		defer release()
		own := func(t require.TestingT, metric string) float64 {
			return serverMetric(t, admin, metric, "priority_level", "eventseries")
		}
		eventually(t, func(c *assert.CollectT) { assert.GreaterOrEqual(c, own(c, "current_inqueue_requests"), 10.0) })
		assert.LessOrEqual(t, own(t, "current_executing_seats"), own(t, "current_limit_seats"))
		emit(recorder, podIn(namespace, "late"), 3) // waits for a seat
		for range 20 {
			require.NoError(t, reconciles(patience))
		}
	})
	r.flush(t)
	assert.Len(t, r.written(t), 2)
	r.requireAccounted(t, 5)
}

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

// serverMetric returns the sum of a metric of API Priority and Fairness over all
// series with a label.
func serverMetric(t require.TestingT, admin kubernetes.Interface, name, label, value string) (sum float64) {
	text, err := admin.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(context.Background())
	require.NoError(t, err)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	require.NoError(t, err)
	for _, m := range families["apiserver_flowcontrol_"+name].GetMetric() {
		for _, pair := range m.GetLabel() {
			if pair.GetName() == label && pair.GetValue() == value {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// firstPause is for how long API Priority and Fairness asks for no request: Retry-After is 1.
const firstPause = time.Second

// inFlight is the maximum number of quick requests in flight at the default QPS.
const inFlight = 10

// eventRateLimit allows a burst of 60 writes of Events in a namespace, and then
// hardly any. It tracks only one namespace: an Event in another one resets it.
const eventRateLimit = `
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits:
    - type: Namespace
      qps: 1
      burst: 60
      cacheSize: 1
`

// TestEventRateLimitPushesBack writes more Events through core/v1 than the
// admission plugin accepts at once, as a user who may only create and patch them.
func TestEventRateLimitPushesBack(t *testing.T) {
	t.Parallel()
	const n = 100 // between one burst and two
	limits := filepath.Join(t.TempDir(), "admission.yaml")
	require.NoError(t, os.WriteFile(limits, []byte(eventRateLimit), 0o600))
	user := controlplane.User{Name: "controller", Token: "controller-token"}
	server := apiserver.Start(t, controlplane.Options{
		Users:     []controlplane.User{user},
		ExtraArgs: []string{"--", "--enable-admission-plugins=EventRateLimit", "--admission-control-config-file=" + limits},
	})
	config := apiserver.ConfigOf(t, server)
	admin := apiserver.ClientsetFor(t, config)
	namespace, other := apiserver.NamespaceOn(t, admin), apiserver.NamespaceOn(t, admin)
	grant(t, admin, "core-event-writer", []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user.Name}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}})
	awaitRoute(t, apiserver.ConfigAs(config, user), "/api/v1/namespaces/"+namespace+"/events", "")

	// Without a limit of its own, only the limit of the server matters.
	r := newRecording(t, coreSink, apiserver.ConfigAs(config, user), events.Options{QPS: -1})
	r.clients = admin
	sent := newTally(namespace, r.recorder())
	for i := range n {
		sent.occur(i, 1+i%3)
	}
	r.start(t)
	eventually(t, func(c *assert.CollectT) { assert.Positive(c, outcomes(r.Stats(), "pushedBack")) })
	for i := range n / 10 {
		sent.occur(10*i, 1)
	}
	_, err := admin.CoreV1().Events(other).Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "stranger"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: other, Name: "other", UID: "other"},
		Reason:         "Intruded",
		Type:           corev1.EventTypeNormal,
		Source:         corev1.EventSource{Component: "stranger"},
		Count:          1,
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	r.flush(t)
	pushedBack := 0
	for _, x := range r.requests.all() {
		if x.code == http.StatusTooManyRequests {
			pushedBack++
			assert.Empty(t, x.retryAfter, "the plugin sends no Retry-After")
		}
	}
	assert.Less(t, pushedBack, n/2, "the recorder waits")
	sent.requireWritten(t, r)
	for _, event := range r.written(t) {
		requireOldFields(t, admin, &event)
	}
}

// TestPriorityAndFairnessPushesBack has a recorder share a priority level of one
// seat with a neighbour who occupies it.
func TestPriorityAndFairnessPushesBack(t *testing.T) {
	t.Parallel()
	apiserver.Since(t, 29, "lacks flowcontrol.apiserver.k8s.io/v1")
	const n = 100
	const group = "crowded"
	user := controlplane.User{Name: "controller", Token: "controller-token", Groups: []string{group}}
	neighbour := controlplane.User{Name: "neighbour", Token: "neighbour-token", Groups: []string{group}}
	// So few seats that one share is one seat.
	server := apiserver.Start(t, controlplane.Options{
		Users:     []controlplane.User{user, neighbour},
		ExtraArgs: []string{"--", "--max-requests-inflight=100", "--max-mutating-requests-inflight=100"},
	})
	config := apiserver.ConfigOf(t, server)
	admin := apiserver.ClientsetFor(t, config)
	namespace := apiserver.NamespaceOn(t, admin)
	grant(t, admin, "event-writer", []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
		rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}})
	_, err := admin.FlowcontrolV1().PriorityLevelConfigurations().Create(t.Context(), apiserver.PriorityLevel(group, 1), metav1.CreateOptions{})
	require.NoError(t, err)
	schema, err := admin.FlowcontrolV1().FlowSchemas().Create(t.Context(), apiserver.FlowSchema(group, flowcontrolv1.Subject{
		Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: group},
	}), metav1.CreateOptions{})
	require.NoError(t, err)
	eventsURL := "/apis/events.k8s.io/v1/namespaces/" + namespace + "/events"
	awaitRoute(t, apiserver.ConfigAs(config, user), eventsURL, schema.UID)
	release := holdSeats(t, apiserver.ConfigAs(config, neighbour), eventsURL, 1)

	r := newRecording(t, eventsSink, apiserver.ConfigAs(config, user), events.Options{})
	r.clients = admin
	r.start(t)
	sent := newTally(namespace, r.recorder())
	for i := range n {
		sent.occur(i, 1+i%3)
	}
	eventually(t, func(c *assert.CollectT) { assert.Positive(c, outcomes(r.Stats(), "pushedBack")) })
	for i := range n {
		sent.occur(i, 1)
	}
	assert.Empty(t, r.written(t), "the server has accepted nothing")
	release()
	// The requests of a recorder need more than one seat: they would push each
	// other back forever.
	_, err = admin.FlowcontrolV1().PriorityLevelConfigurations().Patch(t.Context(), schema.Name, types.MergePatchType,
		[]byte(`{"spec":{"limited":{"nominalConcurrencyShares":100}}}`), metav1.PatchOptions{})
	require.NoError(t, err)

	r.flush(t)
	requirePushedBack(t, r)
	for _, x := range r.requests.requirePause(t) {
		assert.NotEmpty(t, x.retryAfter, "the server sends a Retry-After")
	}
	sent.requireWritten(t, r)
}

// requirePause fails the test unless the server pushed back, and the client then
// sent nothing for the time of a pause. It returns all responses that push back.
func (r *requests) requirePause(t *testing.T) (pushBacks []exchange) {
	t.Helper()
	all := r.all()
	for _, x := range all {
		if x.code == http.StatusTooManyRequests {
			pushBacks = append(pushBacks, x)
		}
	}
	require.NotEmpty(t, pushBacks)
	first := slices.MinFunc(pushBacks, func(a, b exchange) int { return a.answered.Compare(b.answered) }).answered
	during := 0
	for _, x := range all {
		if x.sent.After(first) && x.sent.Before(first.Add(firstPause)) {
			during++
		}
	}
	// Those that began before the response may still send. All 100 would, without a pause.
	require.Less(t, during, inFlight, "requests during the pause")
	return pushBacks
}

func requirePushedBack(t *testing.T, r *recording) {
	t.Helper()
	stats := r.Stats()
	assert.Empty(t, stats.Namespaces, "the pause is over")
	assert.Empty(t, stats.Dropped)
	pushedBack := outcomes(stats, "pushedBack")
	assert.Positive(t, pushedBack)
	requests := outcomes(stats, "")
	assert.EqualValues(t, requests, pushedBack+outcomes(stats, "written"), "other outcomes: %v", stats.Requests)
	t.Logf("%d requests, %d of them pushed back", requests, pushedBack)
}

func grant(t *testing.T, admin kubernetes.Interface, name string, subjects []rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	_, err := admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      rules,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   subjects,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// awaitRoute patches an Event that does not exist until the server permits that, and so
// responds with 404, and until the FlowSchema with a UID routes it, unless that is empty.
// Unlike client-go's clients, it does not retry if the server pushes back.
func awaitRoute(t *testing.T, config *rest.Config, eventsURL string, schema types.UID) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	eventually(t, func(c *assert.CollectT) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, config.Host+eventsURL+"/no-such-event", strings.NewReader("{}"))
		require.NoError(c, err)
		req.Header.Set("Content-Type", "application/merge-patch+json")
		response, err := client.Do(req)
		require.NoError(c, err)
		require.NoError(c, response.Body.Close())
		require.Equal(c, http.StatusNotFound, response.StatusCode)
		if schema != "" {
			require.Equal(c, schema, routeOf(response.Header).schema)
		}
	})
}

// holdSeats sends n creates of Events without their bodies. Each keeps its seat,
// or its place in a queue, while the server waits for the body, and is sent again
// if it gets neither. It returns once one has a seat. release, which the end of
// the test calls too, ends them.
func holdSeats(t *testing.T, config *rest.Config, eventsURL string, n int) (release func()) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	seated := make(chan struct{})
	ctx, cancel := context.WithCancel(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		// The server asks for the body when it begins to read it, after priority
		// and fairness.
		Got100Continue: sync.OnceFunc(func() { close(seated) }),
	}))
	var goroutines sync.WaitGroup
	for range n {
		goroutines.Go(func() {
			for ctx.Err() == nil {
				body, never := io.Pipe()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, config.Host+eventsURL, body)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Expect", "100-continue")
				if response, err := client.Do(req); err == nil {
					_ = response.Body.Close() // it got neither
				}
				_ = never.Close()
			}
		})
	}
	release = sync.OnceFunc(func() {
		cancel()
		goroutines.Wait()
		client.CloseIdleConnections()
	})
	t.Cleanup(release)
	select {
	case <-seated:
	case <-time.After(patience):
		require.Fail(t, "no seat")
	}
	return release
}
