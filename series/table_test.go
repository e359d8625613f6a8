package series

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLifeOfASeries(t *testing.T) {
	now := time.Unix(1000, 0)
	tab := NewTable(Options{}, now)
	k := &Key{Regarding: Reference{Kind: "Pod", Name: "p", Namespace: "n"}, Type: "Normal", Reason: "R", Action: "A"}
	eff := tab.Observe(k, Occurrence{Note: "x"}, now)
	e := eff.Dirty[0]
	w, _, ok := tab.Begin(e, now)
	require.True(t, ok)
	require.Equal(t, WriteCreate, w.Kind)
	require.Equal(t, k.BaseName(), w.Series.Name)
	again, _ := tab.Written(e, w, now)
	require.False(t, again)
	now = now.Add(time.Minute)
	_, counted, _ := tab.Count(k, now)
	require.False(t, counted)
	eff = tab.Observe(k, Occurrence{Note: "y"}, now)
	require.Equal(t, []*Entry{e}, eff.Dirty)
	w, _, _ = tab.Begin(e, now)
	require.Equal(t, WriteSeries, w.Kind)
	p, err := w.Series.Patch()
	require.NoError(t, err)
	t.Log(string(p))
	tab.Written(e, w, now)
	_, counted, _ = tab.Count(k, now)
	require.True(t, counted)
	now = now.Add(6 * time.Minute)
	eff = tab.Expire(e, now)
	require.Equal(t, []*Entry{e}, eff.Dirty)
	w, _, _ = tab.Begin(e, now)
	require.Equal(t, WriteFinish, w.Kind)
	tab.Written(e, w, now)
	a, c := tab.Len()
	require.Zero(t, a+c)
}
