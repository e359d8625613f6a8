package conformance

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/series"
)

// The first event is created. Another that is isomorphic to it makes a series of
// it, by a patch, and from then on there is nothing to write. One with another
// action is an Event of its own. Nothing is ever updated.
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
		assert.Equal(t, calls[0].event.Name, calls[1].event.Name, "what is patched")
		assert.Equal(t, calls[0].event.Namespace, calls[1].event.Namespace)
		assert.EqualValues(t, 2, calls[1].event.Series.Count, "a sink may look at the Event as it becomes")
		assert.Nil(t, calls[2].event.Series)
	})
}

// What makes two events isomorphic: each of these differs from the first in one
// thing, and the note is none of them.
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

// To client-go an object that was changed is another one, so a controller that
// writes a status with each event never has a series. To this recorder it is the
// same.
func TestObjectThatChangesIsTheSame(t *testing.T) {
	withOurs(t, func(t *testing.T, p *program) {
		for _, version := range []string{"1", "2"} {
			about := pod("a")
			about.ResourceVersion = version
			p.emit(about, "Testing")
		}
		assert.EqualValues(t, 2, p.only(t).Series.Count)
	})
}

// Two events at the same moment, about next to nothing, are one Event with a
// series. Where the create was not under way yet, it carries both.
func TestTwoAtOnce(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		for range 2 {
			p.recorder.Eventf(&corev1.ObjectReference{}, nil, corev1.EventTypeNormal, "reason", "action", "", "")
		}
		time.Sleep(time.Minute) // client-go's second write may meet its first and be repeated
		event := p.only(t)
		require.NotNil(t, event.Series)
		assert.EqualValues(t, 2, event.Series.Count)
	})
}

// After some quiet time a series is written for the last time, with when it was
// seen last, and what happens then is a new Event. A singleton needs no such
// write.
//
// Different on purpose: client-go looks every six minutes, so its write comes
// between six and twelve minutes after the end, and nothing says that it is the
// last. Here it comes after six, and the state is Finished.
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

		p.emit(pod("a"), "Testing")
		p.emit(pod("singleton"), "Testing")
		var created int
		for _, c := range p.sink.all()[4:] {
			if c.verb == "create" && c.event.Series == nil {
				created++
			}
		}
		assert.GreaterOrEqual(t, created, 2, "each a new Event")
		assert.Len(t, p.stored(t), 4)
	})
}

func TestSeriesIsFinishedInTime(t *testing.T) {
	withOurs(t, func(t *testing.T, p *program) {
		p.emit(pod("a"), "Testing")
		time.Sleep(5 * time.Minute)
		p.emit(pod("a"), "Testing")
		time.Sleep(6*time.Minute - time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"create", "patch"}, p.sink.verbs())
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"create", "patch", "patch"}, p.sink.verbs())
		assert.Equal(t, series.Finished.String(), p.only(t).Annotations[series.AnnotationState])
	})
}

// A series that goes on is written every half hour, with the count as it is then.
//
// Different on purpose: client-go writes all series at the same moment, by one
// ticker; here each has a half hour of its own, which begins with its last write.
func TestSeriesThatGoesOn(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		time.Sleep(time.Second) // beside client-go's ticks
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

// A write that fails does not end a series, and its count goes on.
//
// Different on purpose: client-go says the count with the next tick, half an hour
// later; here it is tried again in a second.
func TestHeartbeatThatFails(t *testing.T) {
	withBoth(t, func(t *testing.T, p *program) {
		time.Sleep(time.Second)
		p.emit(pod("a"), "Testing")
		p.emit(pod("a"), "Testing")
		p.sink.failWith(func(c call) error {
			if len(p.sink.all()) == 3 {
				return errors.New("connection refused")
			}
			return nil
		})
		for range 40 {
			time.Sleep(time.Minute)
			p.emit(pod("a"), "Testing")
		}
		p.sink.failWith(nil)
		assert.GreaterOrEqual(t, len(p.sink.all()), 3)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		assert.EqualValues(t, 42, p.only(t).Series.Count)
	})
}

func TestHeartbeatThatFailsIsRepeated(t *testing.T) {
	withOurs(t, func(t *testing.T, p *program) {
		p.emit(pod("a"), "Testing")
		p.emit(pod("a"), "Testing")
		p.sink.failWith(func(call) error {
			if len(p.sink.all()) == 3 {
				return errors.New("connection refused")
			}
			return nil
		})
		for range 31 {
			time.Sleep(time.Minute)
			p.emit(pod("a"), "Testing")
		}
		calls := p.sink.all()
		require.Len(t, calls, 4)
		assert.Less(t, calls[3].at.Sub(calls[2].at), 5*time.Second)
	})
}

// An Event that is gone when its series is written is created again, series and
// all, and not as a version of the one that is gone.
func TestEventThatIsGone(t *testing.T) {
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

// Annotations of later occurrences: client-go leaves them out, this recorder adds
// them with the next write.
func TestAnnotationsOfLaterOccurrences(t *testing.T) {
	withOurs(t, func(t *testing.T, p *program) {
		for _, value := range []string{"1", "2"} {
			emission{
				regarding: pod("a"), annotations: map[string]string{"example.com/request": value},
				eventtype: "Normal", reason: "Tested", action: "Testing", note: "note",
			}.emit(p.recorder)
			synctest.Wait()
		}
		assert.Equal(t, "2", p.only(t).Annotations["example.com/request"])
	})
}
