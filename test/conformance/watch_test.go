package conformance

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// lines is a log without times.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) logger() klog.Logger {
	return funcr.New(func(_, args string) { l.add(args) }, funcr.Options{})
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

func (l *lines) get() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.all...)
}

// TestEventWatcher requires that a watcher gets every occurrence, without a sink.
func TestEventWatcher(t *testing.T) {
	for name := range makers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProgram(t, name)
				var seen lines
				stop, err := p.broadcaster.StartEventWatcher(func(object runtime.Object) {
					event := object.(*eventsv1.Event)
					seen.add(fmt.Sprint(event.Regarding.Name, " ", event.Reason, " ", event.Series))
				})
				require.NoError(t, err)
				for range 3 {
					p.emit(pod("a"), "Testing")
				}
				stop()
				p.emit(pod("a"), "Testing")
				assert.Equal(t, []string{"a Tested nil", "a Tested nil", "a Tested nil"}, seen.get())
				assert.Empty(t, p.sink.all())
			})
		})
	}
}

// TestLogOfEvents requires that both log the same lines.
func TestLogOfEvents(t *testing.T) {
	logged := make(map[string][]string)
	for name := range makers {
		synctest.Test(t, func(t *testing.T) {
			p := newProgram(t, name)
			var log lines
			stop, err := p.broadcaster.StartLogging(log.logger())
			require.NoError(t, err)
			p.recorder.Eventf(pod("a"), nil, "Warning", "Failed", "Testing", "failed %d times", 2)
			synctest.Wait()
			stop()
			p.emit(pod("a"), "Testing")
			logged[name] = log.get()
		})
	}
	require.Len(t, logged["client-go"], 1)
	assert.Equal(t, logged["client-go"], logged["eventseries"])
}

// TestWithLogger requires that problems with an event go to the given logger.
func TestWithLogger(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		var log lines
		recorder := p.recorder.WithLogger(log.logger())
		recorder.Eventf(nil, nil, "Normal", "Lost", "Testing", "note")
		recorder.Eventf(pod("a"), nil, "Normal", "Tested", "Testing", "note")
		synctest.Wait()
		require.Len(t, log.get(), 1)
		assert.Contains(t, log.get()[0], "Lost")
		assert.Equal(t, "Tested", p.only(t).Reason, "it records events")
	})
}

// TestAfterShutdown requires that nothing watches or writes, and nothing panics.
func TestAfterShutdown(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		var seen lines
		stop, err := p.broadcaster.StartEventWatcher(func(runtime.Object) { seen.add("event") })
		require.NoError(t, err)
		p.emit(pod("a"), "Testing")
		p.broadcaster.Shutdown()
		p.emit(pod("b"), "Testing")
		assert.Len(t, seen.get(), 1)
		assert.Len(t, p.stored(t), 1)
		_, err = p.broadcaster.StartEventWatcher(func(runtime.Object) {})
		require.Error(t, err)
		_, err = p.broadcaster.StartLogging(klog.Background())
		require.Error(t, err)
		p.broadcaster.StartStructuredLogging(0)()
		stop()
		// The bubble fails the test if a goroutine is left.
	})
}
