package query

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	eventsv1 "k8s.io/api/events/v1"
)

// TestBegan does not take an Event for new whose time is further ahead than a clock can be.
func TestBegan(t *testing.T) {
	for first, want := range map[time.Duration]bool{-time.Nanosecond: false, 0: true, 5 * time.Minute: true, 10 * time.Minute: true, 10*time.Minute + time.Microsecond: false, 24 * time.Hour: false} {
		item := FromEvent(newEvent(func(e *eventsv1.Event) { e.EventTime = micro(first) }), t0)
		assert.Equal(t, want, (&Query{Began: t0}).Matches(item), first)
		assert.True(t, (&Query{}).Matches(item), first)
	}
}
