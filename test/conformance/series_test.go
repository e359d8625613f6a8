package conformance

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	eventseries "github.com/eventseries/eventseries/events"
)

// TestIsomorphicEventsAreASeries requires one create, one patch when the second
// isomorphic event starts a series, and no request for the third. An event with
// another action is another Event.
func TestIsomorphicEventsAreASeries(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		p.emit(pod("a"), "Testing")
		first := p.only(t)
		assert.Nil(t, first.Series)
		time.Sleep(time.Minute)

		p.emit(pod("a"), "Testing")
		event := p.only(t)
		require.NotNil(t, event.Series)
		assert.EqualValues(t, 2, event.Series.Count)
		assert.Zero(t, time.Since(event.Series.LastObservedTime.Time))
		assert.True(t, first.EventTime.Equal(&event.EventTime))

		p.emit(pod("a"), "Testing")
		p.emit(pod("a"), "Stopping")
		assert.Len(t, p.stored(t), 2)
		calls := p.sink.all()
		require.Equal(t, []string{"create", "patch", "create"}, p.sink.verbs())
		assert.Equal(t, calls[0].event.Name, calls[1].event.Name, "the patch is for the same Event")
		assert.Equal(t, calls[0].event.Namespace, calls[1].event.Namespace)
		assert.EqualValues(t, 2, calls[1].event.Series.Count, "the sink gets the patched Event")
		assert.Nil(t, calls[2].event.Series)
	})
}

func TestWhatIsIsomorphic(t *testing.T) {
	base := func() emission {
		return emission{regarding: pod("a"), related: pod("b"), eventtype: "Normal", reason: "Tested", action: "Testing", note: "note"}
	}
	for name, tt := range map[string]struct {
		change     func(e *emission)
		isomorphic bool
	}{
		"nothing": {func(*emission) {}, true},
		"note":    {func(e *emission) { e.note = "another note" }, true},
		"annotations": {func(e *emission) {
			e.annotations = map[string]string{"example.com/a": "b"}
		}, true},
		"regarding":   {func(e *emission) { e.regarding = pod("c") }, false},
		"its UID":     {func(e *emission) { e.regarding.(*corev1.ObjectReference).UID = "uid-2" }, false},
		"its part":    {func(e *emission) { e.regarding.(*corev1.ObjectReference).FieldPath = "spec.containers{main}" }, false},
		"related":     {func(e *emission) { e.related = pod("c") }, false},
		"no related":  {func(e *emission) { e.related = nil }, false},
		"type":        {func(e *emission) { e.eventtype = "Warning" }, false},
		"reason":      {func(e *emission) { e.reason = "Failed" }, false},
		"action":      {func(e *emission) { e.action = "Stopping" }, false},
		"API version": {func(e *emission) { e.regarding.(*corev1.ObjectReference).APIVersion = "v2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			withBoth(t, func(t *testing.T, p *program) {
				base().emit(p.recorder)
				time.Sleep(time.Second)
				e := base()
				tt.change(&e)
				e.emit(p.recorder)
				synctest.Wait()
				stored := p.stored(t)
				if !tt.isomorphic {
					require.Len(t, stored, 2)
					assert.Nil(t, stored[0].Series)
					assert.Nil(t, stored[1].Series)
					return
				}
				require.Len(t, stored, 1)
				require.NotNil(t, stored[0].Series)
				assert.EqualValues(t, 2, stored[0].Series.Count)
			})
		})
	}
}

func TestTwoAtOnce(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		for range 2 {
			p.recorder.Eventf(&corev1.ObjectReference{}, nil, corev1.EventTypeNormal, "reason", "action", "", "")
		}
		time.Sleep(time.Minute) // client-go may retry its second write after a conflict with the first
		event := p.only(t)
		require.NotNil(t, event.Series)
		assert.EqualValues(t, 2, event.Series.Count)
	})
}

// TestSeriesIsFinished requires a last patch after a quiet time, but none for a
// singleton.
//
// Different on purpose: client-go checks every six minutes, so its last patch comes
// six to twelve minutes after the last occurrence, and does not contain that it is the
// last. From then on, it starts another Event. This recorder sends the patch after six
// minutes, with the state Finished, and a later occurrence counts in the same Event.
func TestSeriesIsFinished(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		p.emit(pod("singleton"), "Testing")
		for range 10 {
			p.emit(pod("a"), "Testing")
		}
		last := time.Now()
		assert.Len(t, p.sink.all(), 3)
		time.Sleep(12*time.Minute + time.Second)
		synctest.Wait()

		calls := p.sink.all()
		require.Len(t, calls, 4)
		assert.Equal(t, "patch", calls[3].verb)
		event := calls[3].event
		assert.Equal(t, "a", event.Regarding.Name)
		assert.EqualValues(t, 10, event.Series.Count)
		assert.True(t, last.Truncate(time.Microsecond).Equal(event.Series.LastObservedTime.Truncate(time.Microsecond)))

		time.Sleep(24 * time.Minute)
		p.emit(pod("a"), "Testing")
		p.emit(pod("singleton"), "Testing")
		if p.name == "client-go" {
			assert.Len(t, p.stored(t), 4, "another Event each")
			return
		}
		counts := make(map[string]int32)
		for _, event := range p.stored(t) {
			counts[event.Regarding.Name] += event.Series.Count
		}
		assert.Equal(t, map[string]int32{"a": 10 + 1, "singleton": 1 + 1}, counts)
		assert.Len(t, p.stored(t), 2)
	})
}

// TestHeartbeats requires a patch with the current count every half hour.
//
// Different on purpose: client-go patches all series at the same time. Here the
// half hour of each series begins with its last write.
func TestHeartbeats(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		time.Sleep(time.Second) // not at the ticks of client-go
		for range 59 {
			p.emit(pod("a"), "Testing")
			time.Sleep(time.Minute)
		}
		beats := p.sink.all()[2:]
		require.Len(t, beats, 1)
		assert.Equal(t, "patch", beats[0].verb)
		assert.InDelta(t, 31, beats[0].event.Series.Count, 1)
		assert.Len(t, p.stored(t), 1)
	})
}

// TestHeartbeatThatFails requires that the series and its count continue.
//
// Different on purpose: client-go retries at its next tick, half an hour later.
// This recorder retries after a second.
func TestHeartbeatThatFails(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		time.Sleep(time.Second)
		p.emit(pod("a"), "Testing")
		p.emit(pod("a"), "Testing")
		p.sink.failWith(func(c call) error {
			if len(p.sink.all()) == 3 {
				return syscall.ECONNREFUSED
			}
			return nil
		})
		for range 40 {
			time.Sleep(time.Minute)
			p.emit(pod("a"), "Testing")
		}
		p.sink.failWith(nil)
		calls := p.sink.all()
		assert.GreaterOrEqual(t, len(calls), 3)
		if p.name == "eventseries" {
			require.Len(t, calls, 4)
			assert.Less(t, calls[3].at.Sub(calls[2].at), 5*time.Second)
		}
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		assert.EqualValues(t, 42, p.only(t).Series.Count)
	})
}

// TestEventIsRecreated deletes the Event before its series is patched. The new
// Event has the series but no resourceVersion.
func TestEventIsRecreated(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		p.emit(pod("a"), "Testing")
		event := p.only(t)
		require.NoError(t, p.clients.EventsV1().Events(event.Namespace).Delete(t.Context(), event.Name, metav1.DeleteOptions{}))
		p.emit(pod("a"), "Testing")
		assert.Equal(t, []string{"create", "patch", "create"}, p.sink.verbs())
		assert.Empty(t, p.sink.all()[2].event.ResourceVersion)
		event = p.only(t)
		require.NotNil(t, event.Series)
		assert.EqualValues(t, 2, event.Series.Count)
	})
}

// TestFailedCreateIsRetried fails two creates.
//
// Different on purpose: client-go drops an event with whatever Status the server
// responds, overload included, and after twelve tries. This recorder drops only
// what the server rejects for good.
func TestFailedCreateIsRetried(t *testing.T) {
	for name, err := range map[string]error{
		"response that is not an Event": &apierrors.UnexpectedObjectError{Object: &metav1.Status{}},
		"no response":                   syscall.ECONNREFUSED,
	} {
		t.Run(name, func(t *testing.T) {
			withBoth(t, func(t *testing.T, p *program) {
				p.sink.failWith(func(call) error {
					if len(p.sink.all()) <= 2 {
						return err
					}
					return nil
				})
				p.emit(pod("a"), "Testing")
				time.Sleep(time.Minute)
				synctest.Wait()
				assert.Equal(t, []string{"create", "create", "create"}, p.sink.verbs())
				assert.Equal(t, "a", p.only(t).Regarding.Name)
			})
		})
	}
}

// Different on purpose: client-go drops what the server rejects. This recorder tries it for EventTTL, because a webhook or a
// policy that rejects it can be mended.
func TestRejectedEvent(t *testing.T) {
	for name, err := range map[string]error{
		"invalid":     apierrors.NewInvalid(schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}, "a", nil),
		"bad request": apierrors.NewBadRequest("not understood"),
	} {
		t.Run(name, func(t *testing.T) {
			withBoth(t, func(t *testing.T, p *program) {
				p.sink.failWith(func(call) error { return err })
				p.emit(pod("a"), "Testing")
				time.Sleep(59 * time.Minute)
				ours, ok := p.broadcaster.(*eventseries.Broadcaster)
				if !ok {
					assert.Equal(t, []string{"create"}, p.sink.verbs())
					return
				}
				// Jitter makes delays up to a fifth longer.
				assert.Contains(t, []int{6, 7}, len(p.sink.verbs()))
				assert.Empty(t, ours.Stats().Dropped)
				time.Sleep(2 * time.Minute)
				assert.Equal(t, map[eventseries.DropReason]uint64{"Rejected": 1}, ours.Stats().Dropped)
			})
		})
	}
}
