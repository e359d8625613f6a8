package query

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/randfill"

	"github.com/eventseries/eventseries/series"
)

// FuzzFromEvent reads Events with any fields.
func FuzzFromEvent(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), "Ongoing", "30m", "p.0123456789abcdef", int32(2), int32(0), int64(0), int64(60), int64(0), int64(3600))
	f.Add([]byte{}, "Finished", "", "", int32(-1), int32(3), int64(60), int64(0), int64(-1), int64(0))
	f.Add([]byte{1, 2, 3}, "Running", "soon", ".", int32(0), int32(-3), int64(1)<<60, int64(-1)<<60, int64(5), int64(1)<<33)
	f.Fuzz(func(t *testing.T, data []byte, state, heartbeat, name string, count, legacyCount int32, first, last, legacyLast, at int64) {
		event := &eventsv1.Event{}
		randfill.NewFromGoFuzz(data).NilChance(0.3).Funcs(func(m *metav1.MicroTime, _ randfill.Continue) { *m = metav1.MicroTime{} },
			func(m *metav1.Time, _ randfill.Continue) { *m = metav1.Time{} }).Fill(event)
		event.Name, event.DeprecatedCount = name, legacyCount
		event.EventTime, event.DeprecatedLastTimestamp = metav1.NewMicroTime(fuzzTime(first)), metav1.NewTime(fuzzTime(legacyLast))
		if count != 0 {
			event.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(fuzzTime(last))}
		}
		if state != "" {
			event.Labels = map[string]string{series.LabelState: state}
		}
		event.Annotations = map[string]string{series.AnnotationHeartbeat: heartbeat}
		before := event.DeepCopy()

		now := fuzzTime(at)
		item := FromEvent(event, now)
		assert.Equal(t, before, event)
		assert.Same(t, event, item.Event)
		assert.GreaterOrEqual(t, item.Count, int32(1))
		assert.False(t, item.Last.Before(item.First) && !item.Last.IsZero())
		assert.GreaterOrEqual(t, item.Rate(), 0.)
		assert.Equal(t, item.State == series.Ongoing || item.Stale() || item.State == series.Quiet || item.State == series.Unknown && item.Slow(), !item.StaleAt.IsZero())
		assert.Equal(t, item.Stale() || item.State == series.Quiet, !item.StaleAt.IsZero() && now.After(item.StaleAt))
		assert.Equal(t, event.Namespace, item.Namespace)
		assert.Equal(t, event.Regarding.Name, item.Key.Regarding.Name)
		assert.True(t, SameKey(item, item))
		Settle([]*Item{item, item})
		for _, order := range Orders() {
			require.Zero(t, order.Key(item).Compare(order.Key(item)))
		}
		// What the strict reader accepts, this one reads in the same way.
		if strict, err := series.FromEvent(event); err == nil && legacyCount == 0 && event.DeprecatedLastTimestamp.IsZero() && !strict.First.Before(time.Unix(0, 0)) {
			if !item.ahead() {
				require.NoError(t, item.Problem)
			}
			assert.Equal(t, strict.Count, item.Count)
			assert.True(t, strict.First.Equal(item.First))
			assert.True(t, strict.Last.Equal(item.Last))
			if strict.State != series.Unknown {
				assert.Equal(t, strict.StateAt(now), item.State)
			}
		}
	})
}

// fuzzTime returns a time between the years 1 and 9999, which JSON can encode, or the
// zero time.
func fuzzTime(seconds int64) time.Time {
	const last = 253402300799 // the end of 9999
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds%last, seconds%1e6*1e3)
}

// FuzzSelectors passes any selectors and values to the server.
func FuzzSelectors(f *testing.F) {
	f.Add("regarding.name=x", "a in (b,c)", "Pod", "x", "u", "shop", "Failed")
	f.Add("involvedObject.kind!=Pod,type=Warning", "!a", "", "a,b=c\\", "", "", "=")
	f.Fuzz(func(t *testing.T, fieldSelector, labelSelector, kind, name, uid, namespace, reason string) {
		for role := RegardingOrRelated; role <= Related; role++ {
			q := Query{
				FieldSelector: fieldSelector, LabelSelector: labelSelector, Role: role,
				Objects: []Object{{Kind: kind, Name: name, UID: types.UID(uid), Namespace: namespace}}, Reasons: []string{reason}, Controllers: []string{name},
				States: []series.State{series.Ongoing},
			}
			requests, err := q.plan(true)
			if err != nil {
				require.ErrorContains(t, err, "query: ")
				continue
			}
			for _, r := range requests {
				for _, g := range []group{{field: eventsField}, {field: coreField}} {
					opts := r.options(&g)
					again := Query{FieldSelector: opts.FieldSelector, LabelSelector: opts.LabelSelector}
					_, err := again.plan(false)
					require.NoError(t, err)
				}
			}
		}
	})
}
