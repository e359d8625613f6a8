package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// firstPause is how long a broadcaster leaves the server alone at least after
// its first push-back.
const firstPause = 5 * time.Second

// exchange is a request and its answer.
type exchange struct {
	sent, answered time.Time
	code           int    // 0 if there was no answer
	retryAfter     string // the header
}

// exchanges are those of a client, in the order of their answers.
type exchanges struct {
	mu   sync.Mutex
	list []exchange
	next http.RoundTripper
}

// logExchanges has the clients of a configuration note when they make requests.
func logExchanges(config *rest.Config) *exchanges {
	log := &exchanges{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		log.next = next
		return log
	})
	return log
}

func (l *exchanges) RoundTrip(req *http.Request) (*http.Response, error) {
	x := exchange{sent: time.Now()}
	response, err := l.next.RoundTrip(req)
	x.answered = time.Now()
	if err == nil {
		x.code, x.retryAfter = response.StatusCode, response.Header.Get("Retry-After")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, x)
	return response, err
}

func (l *exchanges) all() []exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// requirePause fails the test unless there was a push-back, and after the first
// one there was no request for the time of a pause. It returns all push-backs.
func (l *exchanges) requirePause(t *testing.T) (pushBacks []exchange) {
	t.Helper()
	all := l.all()
	for _, x := range all {
		if x.code == http.StatusTooManyRequests {
			pushBacks = append(pushBacks, x)
		}
	}
	require.NotEmpty(t, pushBacks)
	first := pushBacks[0].answered
	during := 0
	for _, x := range all {
		if x.sent.After(first) && x.sent.Before(first.Add(firstPause)) {
			during++
		}
	}
	// The other workers may have been past the gate already.
	require.Less(t, during, events.DefaultWorkers, "requests in the pause")
	return pushBacks
}

// waitForPause waits until a broadcaster has been pushed back.
func waitForPause(t *testing.T, r *recording) {
	t.Helper()
	apiserver.Eventually(t, patience, func(context.Context) error {
		if r.Stats().PausedUntil.IsZero() {
			return errors.New("no pause")
		}
		return nil
	})
}

// requirePushedBack fails the test unless a broadcaster that has written all
// shows in its statistics that it was pushed back, that there was nothing else,
// and that nothing was lost.
func requirePushedBack(t *testing.T, r *recording) {
	t.Helper()
	stats := r.Stats()
	assert.GreaterOrEqual(t, stats.Paused, firstPause)
	assert.Zero(t, stats.PausedUntil, "the pause is over")
	assert.Empty(t, stats.Dropped)
	pushedBack := 0
	for key, n := range stats.Writes {
		switch key.Outcome {
		case "pushedBack":
			pushedBack += int(n)
		case "written":
		default:
			assert.Fail(t, "unexpected outcome", "%v: %d", key, n)
		}
	}
	assert.Positive(t, pushedBack)
	t.Logf("%d requests, %d of them pushed back, paused for %v", stats.Requests(), pushedBack, stats.Paused.Round(time.Millisecond))
}

// requireCounts fails the test unless there is one Event of the recording about
// each of the Pods in a namespace, with the given number of occurrences.
func requireCounts(t *testing.T, r *recording, namespace string, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for _, event := range r.written(t) {
		assert.Equal(t, namespace, event.Namespace)
		assert.NotContains(t, got, event.Regarding.Name, "a second Event")
		got[event.Regarding.Name] = occurrences(&event)
	}
	require.Equal(t, want, got)
}

// grant gives users and groups permissions in all namespaces.
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

// probe is a client that makes one request at a time and shows what it is
// answered: client-go's own tries again when it is pushed back.
type probe struct {
	client *http.Client
	url    string // of an Event that does not exist
}

func newProbe(t *testing.T, config *rest.Config, eventsURL string) probe {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return probe{client: client, url: config.Host + eventsURL + "/no-such-event"}
}

// patch tries to patch an Event that does not exist. With the permission to do
// that, the answer is 404.
func (p probe) patch(ctx context.Context) (code int, header http.Header, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, p.url, strings.NewReader("{}"))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := p.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	return response.StatusCode, response.Header, response.Body.Close()
}

// waitFor waits until patch is answered with a code.
func (p probe) waitFor(t *testing.T, code int) {
	t.Helper()
	p.wait(t, code, func(http.Header) error { return nil })
}

// wait is waitFor with a look at the header.
func (p probe) wait(t *testing.T, code int, check func(http.Header) error) {
	t.Helper()
	apiserver.Eventually(t, patience, func(ctx context.Context) error {
		got, header, err := p.patch(ctx)
		switch {
		case err != nil:
			return err
		case got != code:
			return fmt.Errorf("answer is %d, not %d", got, code)
		default:
			return check(header)
		}
	})
}
