package kubectl

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// kubeconfigOf writes a kubeconfig for a server.
func kubeconfigOf(t *testing.T, address string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": [{"name": "test", "cluster": {"server": "`+address+`"}}],
		"contexts": [{"name": "test", "context": {"cluster": "test"}}]}`), 0o600))
	return file
}

// TestErrors requires one line on stderr, and nothing on stdout.
func TestErrors(t *testing.T) {
	kubeconfig := apiserver.Kubeconfig(t)
	nothing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(nothing.Close)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()

	for _, test := range []struct {
		kubeconfig string
		args       string
		want       []string // words in the line
	}{
		{"", "--as jane", []string{`missing permission "list events.events.k8s.io"`, "default"}},
		{"", "-A --as jane", []string{`missing permission "list events.events.k8s.io" in all namespaces`, "pass -n with a namespace whose Events you may list"}},
		{"", "web-0 --as jane", []string{`missing permission "list events.events.k8s.io" in all namespaces`, "pass -n with a namespace whose Events you may list"}},
		{"", "pod/web-0 --as jane", []string{`missing permission "list events.events.k8s.io"`}},
		{"", "backup/nightly -n shop --as jane", []string{`missing permission "list events.events.k8s.io" in the namespace shop`}},
		{"", "-w --as jane", []string{`missing permission "list events.events.k8s.io"`}},
		{"", "timeline pod/web-0 --as jane", []string{`missing permission "list events.events.k8s.io"`}},
		{"", "top --as jane", []string{`missing permission "list events.events.k8s.io"`}},
		{"", "describe x --as jane", []string{`missing permission "list events.events.k8s.io"`}},
		{"", "--token wrong", []string{"credentials"}},
		{nothing.URL, "", []string{"neither in events.k8s.io/v1 nor in core/v1"}},
		{nothing.URL, "pod/web-0", []string{"neither in events.k8s.io/v1 nor in core/v1"}},
		{down.URL, "", []string{"cannot reach the server " + down.URL, "refused"}},
		{down.URL, "-w", []string{"cannot reach the server " + down.URL}},
		{down.URL, "timeline pod/web-0", []string{"cannot reach the server " + down.URL}},
		{"", "--context nowhere", []string{"nowhere"}},
		{"", "pdo/web-0", []string{`unknown kind "pdo"`, "kubectl api-resources"}},
		{"", "-l a==b=c", []string{`--selector "a==b=c"`, "such as"}},
		{"", "--field-selector related.kind=Pod", []string{"related.kind", "want metadata.name", "regarding.kind"}},
		{"", "--field-selector x", []string{`--field-selector "x"`, "such as"}},
		{"", "--since 1h --until 2h", []string{`--until "2h" is before --since "1h"`}},
		{"", "--state done", []string{`--state "done"`, "want one of Ongoing, Unknown, Quiet, Finished, Singleton"}},
		{"", "--type Error", []string{`--type "Error"`, "want one of Normal, Warning"}},
		{"", "--group-by pod", []string{`--group-by "pod"`, "want one of owner, reason, node"}},
		{"", "--group-by owner -w", []string{"--group-by", "watch"}},
		{"", "--group-by owner -o name", []string{`"name"`, "want one of wide, json, yaml"}},
		{"", "timeline pod/a --group-by pod", []string{`--group-by "pod"`, "none"}},
		{"", "--began soon", []string{`--began "soon"`, "want a duration such as 30m"}},
		{"", "--limit -1", []string{"--limit -1"}},
		{"", "--color red", []string{`--color "red"`, "want one of auto, always, never"}},
		{"", "--bogus", []string{"--bogus", "--help"}},
		{"", "top pods", []string{`"pods"`, "want one of controllers, reasons"}},
		{"", "top --sort-by age", []string{`"age"`, "want one of occurrences"}},
		{"", "timeline", []string{"want one object"}},
		{"", "timeline pods", []string{`"pods": want one object`}},
		{"", "timeline pod/a pod/b", []string{"want one object"}},
		{"", "timeline pod/a -o pdf", []string{`"pdf"`, "want one of text, html, svg"}},
		{"", "describe", []string{"want the name of an Event"}},
		{"", "describe no-such-event", []string{`no Event "no-such-event" in the namespace default`}},
	} {
		file := kubeconfig
		if test.kubeconfig != "" {
			file = kubeconfigOf(t, test.kubeconfig)
		}
		r := run(t, file, strings.Fields(test.args)...)
		assert.Equal(t, 1, r.code, test.args)
		assert.Empty(t, r.out, test.args)
		assert.Len(t, lines(r.err), 1, test.args)
		assert.True(t, strings.HasPrefix(r.err, "error: "), "%s: %s", test.args, r.err)
		for _, word := range test.want {
			assert.Contains(t, r.err, word, test.args)
		}
	}
}

// TestPermissions lists with the permission for one namespace only.
func TestPermissions(t *testing.T) {
	const token = "token-of-viewer"
	server := apiserver.Start(t, controlplane.Options{Users: []controlplane.User{{Name: "viewer", Token: token}}})
	clients := apiserver.ClientsetFor(t, apiserver.ConfigOf(t, server))
	grant(t, clients, "shop", "viewer", "list", "watch")
	pod := objectIn("shop", "Pod", "web-0")
	create(t, clients, events(newEvent("shop", "about", pod), newEvent("default", "elsewhere", objectIn("", "Node", "n"))), nil)
	as := []string{"--token", token, "--namespace", "shop"}

	assert.Equal(t, "event.events.k8s.io/about\n", show(t, server.Kubeconfig(), append(as, "-o", "name")...))
	assert.Contains(t, show(t, server.Kubeconfig(), append([]string{"describe", "about"}, as...)...), "note of about")
	// The Pod could be the related object of an Event elsewhere.
	assert.Equal(t, "event.events.k8s.io/about\n", show(t, server.Kubeconfig(), append([]string{"timeline", "pod/web-0", "-o", "name"}, as...)...))
	r := run(t, server.Kubeconfig(), append([]string{"timeline", "pod/web-0", "-o", "name", "--related"}, as...)...)
	assert.Equal(t, "event.events.k8s.io/about\n", r.out)
	assert.Zero(t, r.code)
	assert.Len(t, lines(r.err), 1, r.err)
	assert.Contains(t, r.err, `Warning: Events of other namespaces are missing: missing permission "list events.events.k8s.io" in all namespaces`)
	r = run(t, server.Kubeconfig(), append([]string{"timeline", "pod/web-0", "--owners"}, as...)...)
	assert.Equal(t, 1, strings.Count(r.err+r.out, `missing permission "get pods"`), "once: %s%s", r.err, r.out)
	r = run(t, server.Kubeconfig(), append([]string{"timeline", "pod/web-0", "--owners", "-o", "html"}, as...)...)
	assert.Contains(t, r.err, `missing permission "get pods" in the namespace shop`)
	assert.Contains(t, r.out, "missing permission", "who reads the page should know it as well")
}

// serve starts a server that only lists Events, and returns its kubeconfig.
func serve(t *testing.T, list func(*http.Request) []eventsv1.Event) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(r.URL.Path, "/events") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403}`))
			return
		}
		assert.NoError(t, json.NewEncoder(w).Encode(&eventsv1.EventList{
			TypeMeta: metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "EventList"}, Items: list(r),
		}))
	}))
	t.Cleanup(server.Close)
	return kubeconfigOf(t, server.URL)
}

// TestKindsWithoutDiscovery uses a server that does not tell its kinds.
func TestKindsWithoutDiscovery(t *testing.T) {
	pod := newEvent("default", "pod", objectIn("default", "Pod", "web-0"))
	node := newEvent("default", "node", objectIn("", "Node", "worker-3"))
	kubeconfig := serve(t, func(*http.Request) []eventsv1.Event { return []eventsv1.Event{*pod, *node} })
	for arg, want := range map[string]string{
		"pod/web-0": "pod", "pods/web-0": "pod", "Pod/web-0": "pod", "po/web-0": "pod", "no/worker-3": "node", "nodes/worker-3": "node",
	} {
		assert.Equal(t, "event.events.k8s.io/"+want+"\n", show(t, kubeconfig, arg, "-o", "name"), arg)
	}
	assert.Contains(t, run(t, kubeconfig, "secret/x").err, "No events found about secret/x in the namespace default.")
}
