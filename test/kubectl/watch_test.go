package kubectl

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/faultproxy"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

func objectIn(namespace, kind, name string) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name}
}

func events(all ...*eventsv1.Event) []*eventsv1.Event { return all }

// grant creates a namespace, and permits a user to do verbs on its Events.
func grant(t *testing.T, clients kubernetes.Interface, namespace, user string, verbs ...string) {
	t.Helper()
	apiserver.CreateNamespace(t, clients, namespace)
	_, err := clients.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: verbs}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = clients.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// TestWatchAcrossRestartAndCompaction requires each Event once, and its latest count.
func TestWatchAcrossRestartAndCompaction(t *testing.T) {
	etcdPort := apiserver.FreePort(t)
	server := apiserver.Start(t, controlplane.Options{EtcdPort: etcdPort})
	clients := apiserver.ClientsetFor(t, apiserver.ConfigOf(t, server))
	pod := objectIn("shop", "Pod", "web-0")
	apiserver.CreateNamespace(t, clients, "shop")
	add := func(names ...string) {
		t.Helper()
		for _, name := range names {
			_, err := clients.EventsV1().Events("shop").Create(t.Context(), newEvent("shop", name, pod), metav1.CreateOptions{})
			require.NoError(t, err)
		}
	}
	repeat := func(name string, count int) {
		t.Helper()
		patch := fmt.Sprintf(`{"series":{"count":%d,"lastObservedTime":"2040-01-02T03:04:05.000000Z"}}`, count)
		_, err := clients.EventsV1().Events("shop").Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
	}

	add("a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// A proxy that the test can close keeps the watch away from the server.
	proxy, err := faultproxy.Listen(t.Context(), server.Addr())
	require.NoError(t, err)
	defer func() { require.NoError(t, proxy.Close()) }()
	cmd := command(ctx, t, server.Kubeconfig(), "-n", "shop", "-w", "--sort-by", "name", "--no-headers", "-o", "custom-columns=N:.metadata.name,C:.count",
		"--server", "https://"+proxy.Addr())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	rows := make(chan string, 100)
	go func() {
		defer close(rows)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			rows <- strings.Join(strings.Fields(scanner.Text()), " ")
		}
	}()
	defer func() {
		cancel()
		for range rows {
		}
		_ = cmd.Wait() // killed
	}()
	expect := func(want ...string) {
		t.Helper()
		apiserver.Expect(t, rows, patience, want...)
	}
	expect("a 1", "b 1")
	add("c")
	repeat("a", 2)
	expect("c 1", "a 2")

	require.NoError(t, server.Kill())
	require.NoError(t, server.Restart(t.Context()))
	add("d")
	repeat("a", 3)
	expect("d 1", "a 3")

	proxy.Set(faultproxy.Fault{Refuse: true})
	proxy.Reset()
	require.NoError(t, server.Restart(t.Context()))
	repeat("a", 4)
	repeat("a", 5)
	add("e")
	apiserver.Compact(t, clients, etcdPort)
	proxy.Set(faultproxy.Fault{})
	expect("a 5", "e 1")
	add("f")
	expect("f 1")
	assert.Empty(t, rows)
}

// TestWatchObeysRequestTimeout requires that a watch ends, as a list does.
func TestWatchObeysRequestTimeout(t *testing.T) {
	namespace := apiserver.Namespace(t)
	create(t, apiserver.Clientset(t), events(newEvent(namespace, "a", objectIn(namespace, "Pod", "web-0"))), nil)
	r := run(t, apiserver.Kubeconfig(t), "-n", namespace, "-w", "--request-timeout", "3s", "--no-headers")
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.out, "note of a")
	assert.Empty(t, r.err)
}
