package controllerruntime

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/eventseries/eventseries/events"
)

// A broadcaster that a manager starts logs to the logger of BaseContext.
func TestBroadcasterLogsToTheBaseContext(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var lines []string
	logger := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, args)
	}, funcr.Options{Verbosity: 2})
	mgr := w.newManager(ctrl.Options{
		BaseContext: func() context.Context { return logr.NewContext(context.Background(), logger) },
	}, w.broadcaster(events.Options{}))
	started := make(chan struct{})
	require.NoError(t, mgr.Add(manager.RunnableFunc(func(context.Context) error { close(started); return nil })))
	stop := w.run(mgr)
	w.waitFor("the start", started)
	stop()
	mu.Lock()
	defer mu.Unlock()
	log := strings.Join(lines, "\n")
	assert.Contains(t, log, `"msg"="Recording events"`)
	assert.Contains(t, log, `"msg"="Stopped recording events"`)
}
