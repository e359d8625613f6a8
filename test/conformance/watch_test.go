package conformance

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	eventseries "github.com/eventseries/eventseries/events"
)

// lines keeps what is logged. The time is not.
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

// A watcher gets each event, those that cost no write included, and needs no sink.
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

// The lines of the log are the same.
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

// What is wrong with an event is logged to the logger of WithLogger.
func TestWithLogger(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		var log lines
		recorder := p.recorder.WithLogger(log.logger())
		recorder.Eventf(nil, nil, "Normal", "Lost", "Testing", "note")
		recorder.Eventf(pod("a"), nil, "Normal", "Tested", "Testing", "note")
		synctest.Wait()
		require.Len(t, log.get(), 1)
		assert.Contains(t, log.get()[0], "Lost")
		assert.Equal(t, "Tested", p.only(t).Reason, "it is a recorder like the other")
	})
}

// After Shutdown nobody watches and nothing is written, and nobody panics.
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
		// The bubble does not end while a goroutine is left.
	})
}

// Shutdown comes right after the last event. client-go's recorder may lose it; here
// everything is counted that was emitted before, by whichever goroutine.
func TestShutdownLosesNothing(t *testing.T) {
	withOurs(t, func(t *testing.T, p *program) {
		const n = 100
		var emitters sync.WaitGroup
		for range n {
			emitters.Go(func() { p.recorder.Eventf(pod("a"), nil, "Normal", "Tested", "Testing", "note") })
		}
		emitters.Wait()
		p.broadcaster.Shutdown()
		assert.EqualValues(t, n, p.only(t).Series.Count)
	})
}

// The end of the context: client-go writes nothing from then on. Here the last
// events of a process that is asked to end are written all the same, until its
// Shutdown.
func TestEndOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, "eventseries")
		stopCh := make(chan struct{})
		p.broadcaster.StartRecordingToSink(stopCh)
		p.emit(pod("a"), "Testing")
		close(stopCh)
		synctest.Wait()
		p.emit(pod("b"), "Testing")
		assert.Len(t, p.stored(t), 2, "for a while it is written at once")
		time.Sleep(eventseries.DefaultShutdownTimeout)
		synctest.Wait()
		p.emit(pod("c"), "Testing")
		assert.Len(t, p.stored(t), 2)
		p.broadcaster.Shutdown()
		assert.Len(t, p.stored(t), 3)
	})
}
