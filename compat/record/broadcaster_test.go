package record

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a fake clientset, and what Events on it say.
type server struct{ *fake.Clientset }

func newServer() server { return server{fake.NewClientset()} }

func (s server) sink() EventSink {
	return &typedcorev1.EventSinkImpl{Interface: s.CoreV1().Events("")}
}

// counts returns the occurrences by message.
func (s server) counts(t *testing.T) map[string]int32 {
	t.Helper()
	list, err := s.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	counts := make(map[string]int32)
	for _, event := range list.Items {
		counts[event.Message] += event.Count
	}
	return counts
}

func emit(broadcaster EventBroadcaster, message string, n int) {
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"})
	for range n {
		recorder.Event(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}, "Normal", "Tested", message)
	}
}

// logged returns a context with a logger, and its lines that contain text.
func logged(ctx context.Context) (_ context.Context, with func(text string) []string) {
	var mu sync.Mutex
	var all []string
	logger := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, args)
	}, funcr.Options{})
	return klog.NewContext(ctx, logger), func(text string) (lines []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, line := range all {
			if strings.Contains(line, text) {
				lines = append(lines, line)
			}
		}
		return lines
	}
}

func TestRecordingsOfOneBroadcaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, with := logged(t.Context())
		first, second := newServer(), newServer()
		sink := first.sink()
		broadcaster := NewBroadcaster(WithContext(ctx))
		emit(broadcaster, "early", 2)
		time.Sleep(time.Hour)
		broadcaster.StartRecordingToSink(nil).Stop()
		assert.Len(t, with("sink is nil"), 1)
		assert.Empty(t, first.Actions())

		recording := broadcaster.StartRecordingToSink(sink)
		synctest.Wait()
		assert.Equal(t, map[string]int32{"early": 2}, first.counts(t))
		again, ignored := broadcaster.StartRecordingToSink(sink), broadcaster.StartRecordingToSink(second.sink())
		assert.Len(t, with("another sink"), 1)
		ignored.Stop()
		recording.Stop()
		recording.Stop()
		emit(broadcaster, "recorded", 3)
		again.Stop()
		synctest.Wait()
		want := map[string]int32{"early": 2, "recorded": 3}
		assert.Equal(t, want, first.counts(t))

		emit(broadcaster, "late", 4)
		time.Sleep(11 * time.Second)
		want["late"] = 4
		assert.Equal(t, want, first.counts(t), "emitters can end later")

		emit(broadcaster, "recorded", 5)
		broadcaster.StartRecordingToSink(sink)
		assert.Len(t, with("does not start again"), 1)
		time.Sleep(time.Hour)
		assert.Equal(t, want, first.counts(t))
		assert.Empty(t, second.Actions())
		assert.Equal(t, map[events.DropReason]uint64{"Shutdown": 5}, broadcaster.(*Broadcaster).Events().Stats().Dropped)
		// The bubble deadlocks if a goroutine remains.
	})
}

// A recording that is stopped while the server is down ends.
func TestStopDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, with := logged(t.Context())
		s := newServer()
		s.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("connection refused")
		})
		broadcaster := NewBroadcaster(WithContext(ctx))
		recording := broadcaster.StartRecordingToSink(s.sink())
		emit(broadcaster, "lost", 1)
		recording.Stop()
		time.Sleep(time.Minute)
		assert.Len(t, with("Dropped events"), 1)
		attempts := len(s.Actions())
		time.Sleep(time.Hour)
		assert.Len(t, s.Actions(), attempts)
	})
}

// counted is a context that counts what waits for its end.
type counted struct {
	context.Context
	done    chan struct{}
	waiting int
}

func (c *counted) Done() <-chan struct{} { return c.done }

func (c *counted) AfterFunc(func()) (stop func() bool) {
	c.waiting++
	return func() bool { c.waiting--; return true }
}

// The context of a program outlives its broadcasters.
func TestContextForgetsTheBroadcaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := &counted{Context: context.Background(), done: make(chan struct{})}
		stopped, shutDown := NewBroadcaster(WithContext(ctx)), NewBroadcaster(WithContext(ctx))
		assert.Equal(t, 2, ctx.waiting)
		stopped.StartRecordingToSink(newServer().sink()).Stop()
		shutDown.Shutdown()
		assert.Zero(t, ctx.waiting)
		time.Sleep(time.Minute) // until the first one has ended
	})
}

func TestContextEndsTheBroadcaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newServer()
		broadcaster := NewBroadcaster(nil, WithContext(ctx), WithContext(nil)) //nolint:staticcheck // client-go permits nil
		broadcaster.StartRecordingToSink(s.sink())
		emit(broadcaster, "note", 3)
		cancel()
		synctest.Wait()
		emit(broadcaster, "late", 1)
		assert.Equal(t, map[string]int32{"note": 3}, s.counts(t))
		// The bubble deadlocks if a goroutine remains.
	})
}

func TestOptions(t *testing.T) {
	got := events.Options{Capacity: 1}
	look := WithOptions(func(o *events.Options) { got = *o })
	NewBroadcaster(look, WithOptions(nil), WithSleepDuration(time.Hour))
	assert.Equal(t, events.Options{}, got)

	ctx, with := logged(t.Context())
	NewBroadcaster(WithContext(ctx), WithCorrelatorOptions(CorrelatorOptions{}))
	assert.Empty(t, with(""))
	NewBroadcaster(WithContext(ctx), WithCorrelatorOptions(CorrelatorOptions{QPS: 1}),
		WithCorrelatorOptions(CorrelatorOptions{BurstSize: 100, MessageFunc: EventAggregatorByReasonMessageFunc}))
	assert.Len(t, with(""), 1)
	assert.Contains(t, with("")[0], `"options"=["BurstSize"]`)
}

func TestWithOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		broadcaster := NewBroadcaster(WithOptions(func(o *events.Options) { o.List = ptr.To(true) }), WithCorrelatorOptions(CorrelatorOptions{MaxEvents: 1}))
		broadcaster.StartRecordingToSink(s.sink())
		for _, note := range []string{"a", "b", "c"} {
			emit(broadcaster, note, 1)
		}
		broadcaster.Shutdown()
		counts := s.counts(t)
		assert.Len(t, counts, 1)
		for _, count := range counts {
			assert.EqualValues(t, 3, count)
		}
	})
	ctx, with := logged(t.Context())
	s := newServer()
	broadcaster := NewBroadcaster(WithContext(ctx), WithOptions(func(o *events.Options) { o.Capacity = -1 }))
	assert.Len(t, with("Capacity is negative: -1"), 1)
	broadcaster.StartRecordingToSink(s.sink())
	emit(broadcaster, "note", 3)
	broadcaster.Shutdown()
	assert.Equal(t, map[string]int32{"note": 3}, s.counts(t), "nothing is lost")
}

// Messages that carry progress: people read the latest one, also after a restart, and the
// Event stays one.
func TestLatestMessageIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		messages := func() (all []string) {
			list, err := s.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for _, event := range list.Items {
				all = append(all, event.Message)
			}
			return all
		}
		n := 0
		for range 2 {
			broadcaster := NewBroadcaster(WithOptions(func(o *events.Options) { o.Scope, o.ReportingInstance = events.SameController, "i" }))
			broadcaster.StartRecordingToSink(s.sink())
			for range 30 {
				n++
				emit(broadcaster, fmt.Sprintf("%d of 60", n), 1)
				time.Sleep(time.Minute)
			}
			broadcaster.Shutdown()
			assert.Contains(t, messages(), fmt.Sprintf("(combined from similar events): %d of 60", n))
		}
		assert.Len(t, messages(), 11+10)
	})
}
