package backup

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

const patience = time.Minute

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(apiserver.Main(m))
}

// The controller is in a loop, and that is one Event on the server.
func TestRun(t *testing.T) {
	namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
	_, err := clients.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "orders"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	metricsAddress := freeAddress(t)
	mgr, err := ctrl.NewManager(apiserver.Config(t), ctrl.Options{
		Metrics: server.Options{BindAddress: metricsAddress},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, mgr, clients) }()

	apiserver.Eventually(t, patience, func(ctx context.Context) error {
		found, err := written(ctx, clients, namespace)
		if err == nil && (len(found) != 1 || found[0].Series == nil) {
			err = fmt.Errorf("%d Events, and no series", len(found))
		}
		return err
	})
	text := get(t, "http://"+metricsAddress+"/metrics")
	assert.Contains(t, text, `eventseries_series{state="ongoing"} 1`)
	assert.Contains(t, text, `eventseries_writes_total{kind="series",outcome="written"} 1`)
	cancel()
	require.NoError(t, <-ended)
	found, err := written(context.Background(), clients, namespace)
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, "no space left for 0 keys", found[0].Note)
	assert.GreaterOrEqual(t, found[0].Series.Count, int32(2))
	assert.Equal(t, "Ongoing", found[0].Annotations["eventseries.dev/state"])
}

// written returns the Events about ConfigMaps in a namespace.
func written(ctx context.Context, clients kubernetes.Interface, namespace string) ([]eventsv1.Event, error) {
	list, err := clients.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "regarding.kind=ConfigMap"})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// freeAddress returns an address of this machine on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// get returns what is served under a URL.
func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}
