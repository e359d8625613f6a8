package fakeapi

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAudit(t *testing.T) {
	for patch, problem := range map[string]string{
		`{}`: "",
		`{"metadata":{"labels":{"a":"1"},"annotations":{"a":"1"}}}`:               "",
		`{"series":{"count":5,"lastObservedTime":"2026-03-01T12:02:00.000000Z"}}`: "",
		`{"series":{"count":4,"lastObservedTime":"2026-03-01T12:02:00.000000Z"}}`: "the count of shop/cart-7.0 goes back from 5 to 4",
		`{"series":{"count":6,"lastObservedTime":"2026-03-01T12:00:30.000000Z"}}`: "the time of shop/cart-7.0 goes back",
		`{"series":null}`: "the time of shop/cart-7.0 goes back",
		`{"metadata":{"finalizers":["example.com/a"]}}`: "patch turns ",
	} {
		s := &Server{}
		audit := NewAudit(s)
		foreign := valid()
		foreign.Name = "foreign"
		s.Put(foreign)
		event, err := s.Create(t.Context(), valid())
		require.NoError(t, err)
		for _, data := range []string{`{"series":{"count":5,"lastObservedTime":"2026-03-01T12:01:00.000000Z"}}`, patch} {
			_, err = s.Patch(t.Context(), event, []byte(data))
			require.NoError(t, err)
		}
		if problem == "" {
			assert.Empty(t, audit.Problems())
			assert.EqualValues(t, 5, audit.Delivered())
			continue
		}
		require.NotEmpty(t, audit.Problems(), patch)
		assert.Contains(t, audit.Problems()[0], problem)
	}
}

func TestAuditOfEventsThatAreGone(t *testing.T) {
	s, clock, event := newServer(t)
	audit := NewAudit(s)
	lose := func() {
		require.NoError(t, s.Delete("shop", event.Name))
		audit.Missing("shop", event.Name)
	}
	create := func(first time.Time, delivered, repeated int) {
		t.Helper()
		again := valid()
		again.EventTime.Time = first
		_, err := s.Create(t.Context(), again)
		require.NoError(t, err)
		assert.EqualValues(t, delivered, audit.Delivered())
		assert.EqualValues(t, repeated, audit.Repeated())
	}
	lose()
	create(noon, 0, 0) // the audit has not seen the first create
	lose()
	audit.Dropped("shop", "another")
	audit.Dropped("shop", "cart-7")
	assert.EqualValues(t, 1, audit.Repeated())
	create(noon, 0, 0)
	lose()
	audit.Dropped("shop", "cart-7")
	create(noon.Add(time.Second), 1, 1) // another series
	lose()
	next := valid()
	next.EventTime.Time = noon.Add(2 * time.Second)
	audit.Creating(next) // it fails, so a drop is not about the previous series
	audit.Dropped("shop", "cart-7")
	assert.EqualValues(t, 1, audit.Repeated())
	clock.SetTime(noon.Add(time.Hour))
	audit.Forget(time.Hour - 1)
	create(noon.Add(time.Second), 2, 1)
}

// Two processes know an Event that has occurred once. One counts two more and ends; the other counts
// another one, learns that the Event is gone, and drops the two that it knows of.
func TestAuditOfSharedEventsThatAreGone(t *testing.T) {
	s := &Server{}
	audit := NewAudit(s)
	audit.Share(true)
	event, err := s.Create(t.Context(), valid())
	require.NoError(t, err)
	_, err = s.Patch(t.Context(), event, []byte(`{"series":{"count":3,"lastObservedTime":"2026-03-01T12:01:00.000000Z"}}`))
	require.NoError(t, err)
	audit.Share(false)
	require.NoError(t, s.Delete("shop", event.Name))
	audit.Missing("shop", event.Name)
	assert.Zero(t, audit.Doubtful())
	const emitted, dropped = 4, 2
	audit.Dropped("shop", "cart-7")
	missing := emitted - (int(audit.Delivered()) - int(audit.Repeated()) + dropped)
	assert.Equal(t, 2, missing, "the server has heard of them")
	assert.EqualValues(t, 3, audit.Doubtful())
	_, err = s.Create(t.Context(), valid())
	require.NoError(t, err)
	assert.EqualValues(t, 3, audit.Doubtful(), "not twice")
}

func TestRestore(t *testing.T) {
	s, clock, kept := newServer(t)
	s.TTL = time.Hour
	audit := NewAudit(s)
	create := func(name string) {
		event := valid()
		event.Name = name
		_, err := s.Create(t.Context(), event)
		require.NoError(t, err)
	}
	create("deleted")
	backup := s.Backup()
	version := s.Events()[1].ResourceVersion

	clock.SetTime(noon.Add(59 * time.Minute))
	_, err := s.Patch(t.Context(), kept, []byte(`{"series":{"count":5,"lastObservedTime":"2026-03-01T12:01:00.000000Z"}}`))
	require.NoError(t, err)
	require.NoError(t, s.Delete("shop", "deleted"))
	create("new")
	s.Restore(backup)
	clock.SetTime(noon.Add(118 * time.Minute))
	assert.Nil(t, s.Get("shop", "new"))
	assert.Nil(t, s.Get("shop", kept.Name).Series)
	assert.Equal(t, version, s.Get("shop", "deleted").ResourceVersion)
	create("new")
	assert.Greater(t, version, s.Get("shop", kept.Name).ResourceVersion)
	next := s.Get("shop", "new").ResourceVersion
	s.Restore(backup)
	create("other")
	assert.Equal(t, next, s.Get("shop", "other").ResourceVersion)
	assert.Empty(t, audit.Problems())
}
