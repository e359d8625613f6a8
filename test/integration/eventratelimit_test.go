package integration

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// eventRateLimit allows 60 writes of Events in a namespace, and hardly any more.
// It remembers one namespace alone: when there is an Event in another, it has
// forgotten what it had against the first.
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
// admission plugin takes at once, by a user who may create and patch them and
// nothing else.
func TestEventRateLimitPushesBack(t *testing.T) {
	t.Parallel()
	const n = 100 // more than the burst, less than two of them
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
	newProbe(t, apiserver.ConfigAs(config, user), "/api/v1/namespaces/"+namespace+"/events").waitFor(t, http.StatusNotFound)

	own := apiserver.ConfigAs(config, user)
	log := logExchanges(own)
	// No limit of its own, so that the server's is what binds.
	r := newRecordingTo(t, coreSink, own, events.Options{QPS: -1})
	r.clients = admin
	recorder := r.recorder()
	sent := newTally(namespace, recorder)
	for i := range n {
		sent.occur(i, 1+i%3)
	}
	r.start(t)
	waitForPause(t, r)
	for i := range n / 10 { // it goes on
		sent.occur(10*i, 1)
	}
	strangersCoreEvent(t, admin, other)

	r.flush(t)
	requirePushedBack(t, r)
	for _, x := range log.requirePause(t) {
		assert.Empty(t, x.retryAfter, "the plugin does not say when to come back")
	}
	requireCounts(t, r, namespace, sent.counts)
	r.requireAccounted(t, sent.emitted)
	for _, event := range r.written(t) {
		requireOldFields(t, admin, &event)
	}
}
