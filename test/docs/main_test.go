package docs

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The objects in the pages.
var (
	cronJob = &batchv1.CronJob{ObjectMeta: meta("nightly")}
	job     = &batchv1.Job{ObjectMeta: meta("nightly-1")}
	pod     = &corev1.Pod{ObjectMeta: meta("web-7xk2p")}
	volume  = &corev1.PersistentVolumeClaim{ObjectMeta: meta("data-0")}
	node    = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-7", UID: "uid-of-node-7"}}
)

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)}
}

// written returns the Events on the server.
func written(t *testing.T, clientset *fake.Clientset) []eventsv1.Event {
	t.Helper()
	list, err := clientset.EventsV1().Events("").List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

// writtenByCore returns the Events that were written through the core group to a fake
// clientset, which does not show them in the other group.
func writtenByCore(t *testing.T, clientset *fake.Clientset) []corev1.Event {
	t.Helper()
	list, err := clientset.CoreV1().Events("").List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}
