package apiserver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
)

// PollInterval is the time between two polls of a server.
const PollInterval = 50 * time.Millisecond

// Eventually polls check until it returns nil. After timeout it fails the test with
// the last error.
func Eventually(t *testing.T, timeout time.Duration, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), PollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		require.NoError(t, last, "after %v", timeout)
	}
}
