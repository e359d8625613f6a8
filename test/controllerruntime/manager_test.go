package controllerruntime

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2/ktesting"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

var _ manager.Manager = (*Manager)(nil)

var quotation = regexp.MustCompile("(?s)<!-- from: (\\S+) -->\n\n```go\n(.*?)```")

// Users copy the code from the page, so the page must contain all of it.
func TestDocumentationQuotesTheManager(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "manager.md"))
	require.NoError(t, err)
	var quoted []string
	for _, match := range quotation.FindAllStringSubmatch(string(page), -1) {
		file, quote := match[1], match[2]
		if path.Dir(file) != "test/controllerruntime" || strings.HasSuffix(file, "_test.go") {
			continue // a part of a file, which internal/docs tests
		}
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		require.NoError(t, err)
		_, code, ok := strings.Cut(string(source), "package controllerruntime\n\n")
		require.True(t, ok, file)
		assert.Equal(t, code, quote, file)
		quoted = append(quoted, filepath.Base(file))
	}
	assert.Equal(t, []string{"manager.go", "recorder.go", "recorder_v0_24.go"}, quoted)
}

// Recorders of the manager emit to the broadcaster, and Start returns after all events
// are written.
func TestManagerProvidesRecorders(t *testing.T) {
	for name, opts := range map[string]events.Options{
		"started with the manager": {},
		"started with the leader":  {Scope: events.SameController, ReportingInstance: "replica-1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			broadcaster := w.broadcaster(apiserver.Config(t), opts)
			mgr := w.newManager(w.electing(ctrl.Options{}), broadcaster)
			recorder, legacy := mgr.GetEventRecorder("example.com/wrapped"), legacyRecorder(mgr, "example.com/wrapped")
			r := newReconciler(t, mgr, func(object *corev1.ConfigMap) {
				recorder.Eventf(object, nil, corev1.EventTypeNormal, "New", "Testing", "from the recorder")
				legacy.Event(object, corev1.EventTypeNormal, "Old", "from the legacy recorder")
			})
			annotated, ok := recorder.(events.AnnotatedEventRecorder)
			require.True(t, ok)
			annotated.AnnotatedEventf(w.object("one"), nil, map[string]string{"example.com/a": "b"}, corev1.EventTypeNormal, "Noted", "Testing", "before the start")
			stop := w.run(mgr)
			w.waitFor("the loop", r.looping)
			stop()

			emitted := int(r.emitted.Load())
			assert.Equal(t, map[string]int{
				"from the recorder":        emitted,
				"from the legacy recorder": emitted,
				"before the start":         1,
			}, w.counts("example.com/wrapped"))
			assert.Len(t, w.written(compat.LeaderElection), 2)
			stats := broadcaster.Stats()
			assert.EqualValues(t, 2*emitted+1+2, stats.Occurrences)
			assert.Empty(t, stats.Dropped)
		})
	}
}

func TestNewManagerReturnsErrors(t *testing.T) {
	_, err := NewManager(nil, ctrl.Options{}, events.NewBroadcaster(nil))
	assert.Error(t, err)
}

func TestBroadcasterLogsToBaseContext(t *testing.T) {
	w := newWorld(t)
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	mgr := w.newManager(ctrl.Options{
		BaseContext: func() context.Context { return logr.NewContext(context.Background(), logger) },
	}, w.broadcaster(apiserver.Config(t), events.Options{}))
	started := make(chan struct{})
	require.NoError(t, mgr.Add(manager.RunnableFunc(func(context.Context) error { close(started); return nil })))
	stop := w.run(mgr)
	w.waitFor("the start", started)
	stop()
	log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	assert.Contains(t, log, "Recording events")
	assert.Contains(t, log, "Stopped recording events")
}
