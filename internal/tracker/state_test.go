package tracker

import (
	"testing"

	"github.com/eventseries/eventseries/series"
	"github.com/stretchr/testify/assert"
)

func TestState(t *testing.T) {
	for _, tt := range []struct {
		state  series.State
		text   string
		closed bool
	}{
		{series.Singleton, "Singleton", false},
		{series.Ongoing, "Ongoing", false},
		{series.Finished, "Finished", true},
		{series.Unknown, "Unknown", true},
	} {
		assert.Equal(t, tt.text, tt.state.String())
		assert.Equal(t, tt.closed, tt.state.Closed())
		parsed, ok := series.ParseState(tt.text)
		assert.True(t, ok)
		assert.Equal(t, tt.state, parsed)
	}
	assert.Equal(t, "State(9)", series.State(9).String())
	assert.Zero(t, series.Singleton)

	state, ok := series.ParseState("")
	assert.True(t, ok, "an Event without the annotation")
	assert.Equal(t, series.Singleton, state)
	for _, value := range []string{"ongoing", "Ongoing ", "State(1)", "0"} {
		_, ok := series.ParseState(value)
		assert.False(t, ok, value)
	}
}

func TestWriteKind(t *testing.T) {
	for kind := range WriteKinds {
		assert.NotEmpty(t, kind.String())
	}
	assert.Equal(t, "heartbeat", WriteHeartbeat.String())
	assert.Equal(t, "WriteKind(10)", WriteKinds.String())
	for _, kind := range []WriteKind{WriteCreate, WriteRecreate, WriteSeries, WriteHeartbeat, WriteFinish, WriteFlush, WriteLook, WriteClose, WriteSuccessor} {
		w := Write{Kind: kind}
		assert.Equal(t, kind == WriteCreate || kind == WriteRecreate, w.Creates(), kind)
	}
}

func TestUrgency(t *testing.T) {
	assert.Equal(t, NewsWarning, urgencyOf("Warning", true))
	assert.Equal(t, NewsNormal, urgencyOf("Normal", true))
	assert.Equal(t, RefreshWarning, urgencyOf("Warning", false))
	assert.Equal(t, RefreshNormal, urgencyOf("Normal", false))
	assert.EqualValues(t, 4, Urgencies)
}

// The urgency follows what an entry waits for.
func TestUrgencyOfEntries(t *testing.T) {
	w := newWorld(t, Options{})
	for key, news := range map[string]Urgency{"a": NewsNormal, "A": NewsWarning} {
		refresh := news + 2
		w.see(key, "", 0)
		e := w.entry(key + "/1")
		assert.Equal(t, news, e.Urgency(), "create")
		w.see(key, "", 0)
		w.begin(key+"/1", 0)
		w.answer(key+"/1", 0)
		w.beat(key + "/1")
		assert.Equal(t, refresh, e.Urgency(), "heartbeat")
		w.begin(key+"/1", 0)
		w.answer(key+"/1", 0)
		w.see(key, "", 0)
		w.flush()
		assert.Equal(t, refresh, e.Urgency(), "flush")
		w.expire(key+"/1", DefaultWindow)
		assert.Equal(t, news, e.Urgency(), "end")
	}
}
