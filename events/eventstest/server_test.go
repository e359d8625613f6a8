package eventstest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

// Package fakeapi tests everything that does not depend on the fields.
func TestServerTTL(t *testing.T) {
	for _, row := range []struct{ ttl, alive, expired time.Duration }{
		{ttl: 0, alive: time.Hour - 1, expired: time.Hour},
		{ttl: 2 * time.Hour, alive: 2*time.Hour - 1, expired: 2 * time.Hour},
		{ttl: time.Second, alive: time.Second - 1, expired: time.Second},
		{ttl: -1, alive: 1000 * time.Hour},
	} {
		clock := clocktesting.NewFakePassiveClock(noon)
		s := &Server{Clock: clock, TTL: row.ttl}
		event, err := s.Create(t.Context(), valid())
		require.NoError(t, err)
		clock.SetTime(noon.Add(row.alive))
		assert.Len(t, s.Events(), 1, "%v", row.ttl)
		if row.expired == 0 {
			require.NoError(t, s.Delete(event.Namespace, event.Name))
		}
		clock.SetTime(noon.Add(row.expired))
		assert.Empty(t, s.Events(), "%v", row.ttl)
	}
}

func TestServerAnswer(t *testing.T) {
	s := &Server{Clock: clocktesting.NewFakePassiveClock(noon)}
	event, err := s.Create(t.Context(), valid())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	s.Answer(func(ctx context.Context, _ Request) error { cancel(); <-ctx.Done(); return nil })
	_, err = s.Patch(ctx, event, []byte(`{"metadata":{"annotations":{"a":"1"}}}`))
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, s.Events()[0].Annotations, "the server did not carry it out")
	assert.Equal(t, "12:00:00 patch shop/cart-7.0123456789abcdef: context canceled", s.Requests()[1].String())

	s.Answer(func(context.Context, Request) error { return assert.AnError })
	_, err = s.Update(t.Context(), event)
	require.ErrorIs(t, err, assert.AnError)
	s.Answer(nil)
	_, err = s.Update(t.Context(), event)
	require.NoError(t, err)
}
