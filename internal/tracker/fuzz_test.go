package tracker

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/series"
)

// anyEvent returns an Event with a name of k that anybody can have written.
func anyEvent(k *series.Key, salt uint8, first, last int64, count int32, state, heartbeat, window, version string) *eventsv1.Event {
	at := func(micros int64) metav1.MicroTime {
		return metav1.NewMicroTime(start.Add(time.Duration(micros) * time.Microsecond))
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.Regarding.Namespace, Name: k.Name(int(salt % series.Salts)), ResourceVersion: version,
			Annotations: map[string]string{series.AnnotationHeartbeat: heartbeat, series.AnnotationWindow: window},
		},
		EventTime: at(first), Regarding: k.Regarding.ObjectReference(), Type: k.Type, Action: k.Action, Reason: k.Reason,
		ReportingController: k.ReportingController, ReportingInstance: k.ReportingInstance, Note: "before",
	}
	if state != "" {
		event.Labels = map[string]string{series.LabelState: state}
	}
	if count > 1 || count < 0 {
		event.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: at(last)}
	}
	return event
}

func seedEvents(f *testing.F) {
	f.Helper()
	minute := time.Minute.Microseconds()
	for seed := range uint64(8) {
		f.Add(seed, uint8(0), -10*minute, -minute, int32(7), "Ongoing", "30m", "", "17")
		f.Add(seed, uint8(0), -10*minute, -10*minute, int32(1), "", "", "", "1")
		f.Add(seed, uint8(1), -300*minute, -70*minute, int32(100), "Finished", "1h", "36m", "")
		f.Add(seed, uint8(0), int64(0), int64(0), int32(math.MaxInt32), "Unknown", "-1s", "100h", "x")
		f.Add(seed, uint8(2), int64(math.MinInt64/2), int64(math.MaxInt64/2), int32(2), "Ongoing", "100000h", "1ns", "2")
		f.Add(seed, uint8(0), 20*minute, 30*minute, int32(-1), "Sad", "", "", "3")
	}
}

// FuzzLook looks at any Event, at any time in the life of an entry. Whatever it finds: no count goes
// down, here or on the server, nothing that has occurred is lost, and only a stranger changes the name.
func FuzzLook(f *testing.F) {
	seedEvents(f)
	f.Fuzz(func(t *testing.T, seed uint64, salt uint8, first, last int64, count int32, state, heartbeat, window, version string) {
		rng := rand.New(rand.NewPCG(seed, 0))
		tr, k, now := New(Options{Shared: seed%2 == 1, Seed: 1}, start), testKey("a"), start
		if seed%2 == 1 {
			k.ReportingInstance = ""
		}
		occurred := 1 + rng.IntN(3)
		for range occurred {
			now = now.Add(time.Duration(rng.Int64N(int64(40 * time.Minute))))
			tr.Observe(k, Occurrence{Instance: "controller-0", Note: "n"}, now)
		}
		e := entryOf(tr, k)
		for range rng.IntN(3) { // attempts without an answer
			var w *Write
			w, now = await(t, tr, now)
			tr.Apply(w, Response{Outcome: schedule.Troubled, MayBeStored: true}, now)
			tr.Observe(k, Occurrence{}, now)
			occurred++
		}
		w, at := await(t, tr, now)
		now = at
		tr.Apply(w, Response{Outcome: schedule.Taken}, now)
		if rng.IntN(3) == 0 {
			tr.evict(e, now)
		}
		require.Equal(t, looking, e.phase)
		w, now = await(t, tr, now)
		event := anyEvent(k, salt, first, last, count, state, heartbeat, window, version)
		if rng.IntN(4) > 0 { // as if it were its own
			event.Name, event.EventTime = w.Series.Name, metav1.NewMicroTime(time.UnixMicro(e.first))
		}
		before, response := e.count, event.DeepCopy()
		drops := tr.Apply(w, Response{Event: event}, now)
		require.Empty(t, drops)
		require.Equal(t, response, event, "it belongs to the caller")
		checkInvariants(t, tr, now, 1)
		found := read(event)
		require.GreaterOrEqual(t, e.count, before)
		switch {
		case e.class == classNone:
			require.Equal(t, closing, e.life)
			return
		case e.phase == live:
			require.NotNil(t, found)
			require.Zero(t, e.salt)
			require.GreaterOrEqual(t, e.count, found.Count)
			require.Equal(t, found.Count, e.stored.count)
		default:
			require.Equal(t, unwritten, e.phase)
			require.EqualValues(t, 1, e.salt)
			require.EqualValues(t, occurred, e.count)
		}
		tr.Observe(k, Occurrence{}, now)
		tr.Flush(now)
		for n := 0; e.class != classNone && e.unstored() > 0; n++ {
			require.Less(t, n, 100)
			w, now = await(t, tr, now)
			written, err := series.FromEvent(w.Series.Event())
			require.NoError(t, err)
			if e.phase == live {
				require.GreaterOrEqual(t, written.Count, found.Count)
				require.False(t, written.Last.Before(found.Last.Truncate(time.Microsecond))) // as the API has times
			}
			tr.Apply(w, Response{}, now)
			checkInvariants(t, tr, now, 1)
		}
	})
}

// FuzzRestore restores any Event, before or after an occurrence. It is ignored, or its count is part
// of the series.
func FuzzRestore(f *testing.F) {
	seedEvents(f)
	f.Fuzz(func(t *testing.T, seed uint64, salt uint8, first, last int64, count int32, state, heartbeat, window, version string) {
		tr, k := New(Options{Shared: seed%2 == 1, Seed: 1}, start), testKey("a")
		event := anyEvent(k, salt, first, last, count, state, heartbeat, window, version)
		found, err := series.FromEvent(event)
		if err != nil {
			return
		}
		if seed%2 == 1 {
			k.ReportingInstance = ""
		}
		occurred := int32(seed / 2 % 3)
		for range occurred {
			tr.Observe(k, Occurrence{}, start)
		}
		restored, drops := tr.Restore(found, start)
		require.Empty(t, drops)
		checkInvariants(t, tr, start, 0)
		tr.Observe(k, Occurrence{}, start)
		e := entryOf(tr, k)
		sum := int64(occurred) + 1
		if restored && e.phase == live {
			sum += int64(found.Count)
		}
		require.EqualValues(t, min(sum, math.MaxInt32), e.count)
		for n, now := 0, start; e.class != classNone; n++ {
			require.Less(t, n, 1000, "at %s", now)
			due, request := wakes(tr, now)
			if now = request; request.IsZero() {
				now = due
			}
			require.Empty(t, advance(tr, now))
			if w, _, ok := next(tr, now); ok {
				_, err := series.FromEvent(w.Series.Event())
				require.NoError(t, err)
				require.Empty(t, tr.Apply(w, Response{}, now))
			}
			checkInvariants(t, tr, now, 1)
		}
	})
}
