package integration

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

func eitherSink(clients *kubernetes.Clientset) events.EventSink { return compat.NewSink(clients) }

// TestSinkWithPartialPermissions emits events while the role of the program changes. There
// is one Event with the right count in both groups.
func TestSinkWithPartialPermissions(t *testing.T) {
	t.Parallel()
	type role = map[string][]string // verbs by resource
	write := []string{"create", "patch"}
	core, newer, both := role{coreResource: write}, role{eventsResource: write}, role{coreResource: write, eventsResource: write}
	for name, row := range map[string]struct {
		roles    []role
		restart  bool // before each role but the first
		unserved bool // the server does not serve events.k8s.io/v1
		// deprecated is when the deprecated fields were last written: by the last patch
		// ("up to date"), by an earlier request ("stale"), or never.
		deprecated string
		logged     int  // lines about events.k8s.io/v1
		noSource   bool // created through events.k8s.io/v1; patches do not add the source
	}{
		"core":                               {roles: []role{core}, deprecated: "up to date"},
		"events.k8s.io":                      {roles: []role{newer}, logged: 1},
		"both":                               {roles: []role{both}, deprecated: "up to date"},
		"not served":                         {roles: []role{both}, unserved: true, deprecated: "up to date"},
		"create in core, both in the other":  {roles: []role{{coreResource: {"create"}, eventsResource: write}}, deprecated: "stale", logged: 1},
		"create in core, patch in the other": {roles: []role{{coreResource: {"create"}, eventsResource: {"patch"}}}, deprecated: "stale", logged: 1},
		"patch in core, both in the other":   {roles: []role{{coreResource: {"patch"}, eventsResource: write}}, logged: 1},
		"nothing, then core":                 {roles: []role{{}, core}, deprecated: "up to date"},
		"nothing, then events.k8s.io":        {roles: []role{{}, newer}, logged: 1},
		"core, then events.k8s.io":           {roles: []role{core, newer}, deprecated: "stale", logged: 1},
		"core, nothing, then both":           {roles: []role{core, {}, both}, deprecated: "up to date"},
		"events.k8s.io, then core":           {roles: []role{newer, core}, deprecated: "up to date", logged: 1, noSource: true},
		"core, restart with both":            {roles: []role{core, both}, restart: true, deprecated: "up to date"},
		"events.k8s.io, restart with both":   {roles: []role{newer, both}, restart: true, deprecated: "up to date", logged: 1, noSource: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, config := apiserver.Namespace(t), apiserver.Config(t)
			a, clients, pod := accountIn(namespace), apiserver.ClientsetFor(t, config), podIn(namespace, "pod")
			config = a.config(config)
			sink := eitherSink
			if row.unserved {
				sink = func(*kubernetes.Clientset) events.EventSink {
					old := rest.CopyConfig(config)
					old.Wrap(withoutEventsV1)
					return eitherSink(apiserver.ClientsetFor(t, old))
				}
			}
			clock := clocktesting.NewFakeClock(time.Now())
			opts := events.Options{ReportingInstance: "test-" + namespace}
			begin := func() (*recording, func(...string) []string) {
				r := newRecording(t, at(clock, sink), config, opts)
				return r, r.startLogging(t)
			}
			r, logged := begin()
			emitted, logs := 0, 0
			var event *eventsv1.Event
			for i, role := range row.roles {
				a.setRole(t, clients, role)
				if i > 0 && row.restart {
					r.Shutdown()
					logs += len(logged("Using events.k8s.io/v1"))
					r, logged = begin()
				}
				if len(role) == 0 {
					emit(r.recorder(), pod, 1)
					emitted++
					poll(t, r, func(c *assert.CollectT) {
						require.Positive(c, r.writes("create", "denied")+r.writes("series", "denied")+r.writes("flush", "denied"))
					})
					continue
				}
				for range 2 { // the second one is patched
					emit(r.recorder(), pod, 2)
					emitted += 2
					poll(t, r, func(c *assert.CollectT) {
						clock.Step(time.Second) // a series that was denied waits for its back-off
						written := r.written(c)
						require.Len(c, written, 1)
						require.Equal(c, emitted, occurrences(&written[0]))
						event = &written[0]
					})
				}
			}
			logs += len(logged("Using events.k8s.io/v1"))
			assert.Equal(t, row.logged, logs)
			assert.Empty(t, r.Stats().Dropped)
			requireSameInCore(t, clients, event)
			switch row.deprecated {
			case "":
				requireNoOldFields(t, clients, event)
			case "stale":
				assert.Positive(t, event.DeprecatedCount)
				assert.Less(t, int(event.DeprecatedCount), emitted)
			default:
				assert.EqualValues(t, emitted, event.DeprecatedCount)
				assert.Equal(t, event.Series.LastObservedTime.Unix(), event.DeprecatedLastTimestamp.Unix())
				assert.Equal(t, series.EventTime(event).Unix(), event.DeprecatedFirstTimestamp.Unix())
				want := controller
				if row.noSource {
					want = ""
				}
				assert.Equal(t, want, event.DeprecatedSource.Component)
			}
		})
	}
}

// poll flushes the broadcaster until check passes.
func poll(t *testing.T, r *recording, check func(*assert.CollectT)) {
	t.Helper()
	eventually(t, func(c *assert.CollectT) {
		ctx, cancel := context.WithTimeout(t.Context(), apiserver.PollInterval)
		defer cancel()
		_ = r.Flush(ctx) // fails while the server denies requests
		check(c)
	})
}

// withoutEventsV1 makes the server respond as if it did not serve events.k8s.io/v1.
func withoutEventsV1(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		req = req.Clone(req.Context())
		req.URL.Path = strings.Replace(req.URL.Path, "/apis/events.k8s.io/v1/", "/apis/events.k8s.io/v0/", 1)
		return next.RoundTrip(req)
	})
}

// setRole gives the account exactly these permissions on Events in its namespace, and waits
// until the server knows.
func (a account) setRole(t *testing.T, clients kubernetes.Interface, verbs map[string][]string) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: manifestAccount}}
	for resource, verbs := range verbs {
		resource, group, _ := strings.Cut(resource, ".")
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs})
	}
	// The server creates them if they do not exist.
	_, err := clients.RbacV1().Roles(a.namespace).Update(t.Context(), role, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = clients.RbacV1().RoleBindings(a.namespace).Update(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: manifestAccount},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: manifestAccount},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace, Name: manifestAccount}},
	}, metav1.UpdateOptions{})
	require.NoError(t, err)
	eventually(t, func(c *assert.CollectT) {
		for _, resource := range []string{coreResource, eventsResource} {
			for _, verb := range []string{"create", "patch", "update"} {
				require.Equal(c, slices.Contains(verbs[resource], verb), a.may(c, clients, permission{verb, resource, a.namespace}))
			}
		}
	})
}
