package kubectl

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

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

// TestWatchObeysRequestTimeout requires that a watch ends, as a list does.
func TestWatchObeysRequestTimeout(t *testing.T) {
	namespace := apiserver.Namespace(t)
	create(t, apiserver.Clientset(t), events(newEvent(namespace, "a", objectIn(namespace, "Pod", "web-0"))), nil)
	r := run(t, apiserver.Kubeconfig(t), "-n", namespace, "-w", "--request-timeout", "3s", "--no-headers")
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.out, "note of a")
	assert.Empty(t, r.err)
}
