package chaos

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type fixedSink struct {
	listingSink // nil
	answer      *eventsv1.Event
	err         error
}

func (s *fixedSink) Create(context.Context, *eventsv1.Event) (*eventsv1.Event, error) {
	return s.answer, s.err
}

func (s *fixedSink) Patch(context.Context, *eventsv1.Event, []byte) (*eventsv1.Event, error) {
	return s.answer, s.err
}

func (s *fixedSink) List(context.Context, string, metav1.ListOptions) (*eventsv1.EventList, error) {
	return &eventsv1.EventList{Items: []eventsv1.Event{*s.answer}}, s.err
}

func TestSinkReportsAdditions(t *testing.T) {
	event := func(name string, count int32, age time.Duration) *eventsv1.Event {
		e := eventOf(0, 1, count)
		e.Name, e.EventTime = name, metav1.NewMicroTime(time.Unix(1e9, 0).Add(-age))
		return &e
	}
	var pipe bytes.Buffer
	server := &fixedSink{}
	s := newAccountingSink(server, &reporter{begin: time.Now(), out: &pipe})
	create := func(e *eventsv1.Event) error { _, err := s.Create(t.Context(), e); return err }
	list := func(*eventsv1.Event) error { _, err := s.List(t.Context(), "", metav1.ListOptions{}); return err }
	look := func(e *eventsv1.Event) error { _, err := s.Patch(t.Context(), e, []byte(`{}`)); return err }
	ten := func(e *eventsv1.Event) error {
		_, err := s.Patch(t.Context(), e, []byte(`{"series":{"count":10}}`))
		return err
	}
	lost := errors.New("lost")
	const none = -1
	for i, step := range []struct {
		request     func(*eventsv1.Event) error
		event       *eventsv1.Event // also the answer
		err         error
		sent, acked int64
	}{
		// An Event of this process, which missed the answer to the create.
		{create, event("own", 2, 0), lost, 2, none},
		{look, event("own", 2, 0), nil, none, none},
		{ten, event("own", 2, 0), lost, 10, none},
		{ten, event("own", 2, 0), nil, 10, 10},
		// An Event of an earlier process. The base does not change after a patch.
		{look, event("by name", 7, time.Hour), nil, none, none},
		{ten, event("by name", 7, time.Hour), nil, 3, 3},
		{look, event("by name", 10, time.Hour), nil, none, none},
		{ten, event("by name", 10, time.Hour), nil, 3, 3},
		{list, event("by list", 7, time.Hour), nil, none, none},
		{ten, event("by list", 7, time.Hour), nil, 3, 3},
		{list, event("by list", 10, time.Hour), nil, none, none},
		{ten, event("by list", 10, time.Hour), nil, 3, 3},
	} {
		server.answer, server.err = step.event, step.err
		require.ErrorIs(t, step.request(step.event), step.err)
		sent, acked := int64(none), int64(none)
		count := func(a *addition, to *int64) {
			if a != nil {
				assert.Equal(t, &addition{Key: 1, Event: step.event.Name, Count: a.Count}, a, i)
				*to = a.Count
			}
		}
		require.NoError(t, readReports(&pipe, func(r report) {
			count(r.Sent, &sent)
			count(r.Acked, &acked)
		}))
		assert.Equal(t, []int64{step.sent, step.acked}, []int64{sent, acked}, "step %d", i)
	}
}
