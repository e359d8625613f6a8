package events

import (
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

func TestStartLogging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		var lines []string
		logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 3})
		stop, err := w.broadcaster.StartLogging(logger.V(3))
		require.NoError(t, err)
		_, err = w.broadcaster.StartLogging(logger.V(4))
		require.NoError(t, err)
		w.recorder.Eventf(testPod(0), nil, "Warning", "BackOff", "Restarting", "in %ds", 10)
		synctest.Wait()
		require.Len(t, lines, 1, "the other one is too verbose")
		assert.Equal(t, `"level"=3 "msg"="Event occurred" "object"={"name"="pod-0" "namespace"="ns"} "kind"="Pod" "apiVersion"="v1"`+
			` "type"="Warning" "reason"="BackOff" "action"="Restarting" "note"="in 10s"`, lines[0])
		stop()
		w.emit(0)
		synctest.Wait()
		assert.Len(t, lines, 1)
	})
}

func TestStartStructuredLogging(t *testing.T) {
	var lines []string
	klog.SetLogger(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	defer klog.ClearLogger()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		stop := w.broadcaster.StartStructuredLogging(0)
		w.emit(0)
		synctest.Wait()
		require.Len(t, lines, 1)
		assert.Contains(t, lines[0], "Event occurred")
		stop()
		w.emit(0)
		synctest.Wait()
		assert.Len(t, lines, 1)
	})
}
