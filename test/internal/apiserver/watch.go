package apiserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Compact makes etcd forget all versions before the present one, so that the server
// answers a list or a watch that continues from one of them with 410.
func Compact(t *testing.T, clients kubernetes.Interface, etcdPort int) {
	t.Helper()
	list, err := clients.EventsV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/v3/kv/compaction", etcdPort),
		strings.NewReader(`{"physical":true,"revision":`+list.ResourceVersion+`}`))
	require.NoError(t, err)
	client := http.Client{Timeout: time.Minute}
	response, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
}

// Expect requires that the next values from a channel are those wanted. It waits for each
// of them for at most patience.
func Expect(t *testing.T, values <-chan string, patience time.Duration, want ...string) {
	t.Helper()
	var got []string
	for range want {
		select {
		case value := <-values:
			got = append(got, value)
		case <-time.After(patience):
			require.Fail(t, "no value", "want %v, got %v", want, got)
		}
	}
	require.Equal(t, want, got)
}
