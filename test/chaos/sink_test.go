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

// fixedSink returns the same answer to every request.
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
	var pipe bytes.Buffer
	server := &fixedSink{}
	s := newAccountingSink(server, &reporter{begin: time.Now(), out: &pipe})
	// reported returns what the sink reports during a request that returns want.
	reported := func(request func() error, want error) (sent, acked *addition) {
		t.Helper()
		pipe.Reset()
		server.err = want
		require.ErrorIs(t, request(), want)
		require.NoError(t, readReports(&pipe, func(r report) {
			if r.Sent != nil {
				sent = r.Sent
			}
			if r.Acked != nil {
				acked = r.Acked
			}
		}))
		return sent, acked
	}
	patch := func(event eventsv1.Event, data string) func() error {
		return func() error {
			_, err := s.Patch(t.Context(), &event, []byte(data))
			return err
		}
	}
	const look, ten = `{}`, `{"series":{"count":10}}`
	lost := errors.New("lost")

	// An Event of this process, which missed the answer to the create.
	own := eventOf(0, 1, 2)
	own.Name, own.EventTime = "own", metav1.NowMicro()
	create := func() error { _, err := s.Create(t.Context(), &own); return err }
	sent, acked := reported(create, lost)
	assert.Equal(t, &addition{Key: 1, Event: "own", Count: 2}, sent)
	assert.Nil(t, acked)
	server.answer = &own
	sent, acked = reported(patch(own, look), nil)
	assert.Nil(t, sent)
	assert.Nil(t, acked)
	sent, acked = reported(patch(own, ten), lost)
	assert.EqualValues(t, 10, sent.Count)
	assert.Nil(t, acked)
	sent, acked = reported(patch(own, ten), nil)
	assert.EqualValues(t, 10, sent.Count)
	assert.Equal(t, sent, acked)

	// An Event of an earlier process.
	for name, find := range map[string]func() error{
		"by name": patch(own, look),
		"by list": func() error { _, err := s.List(t.Context(), "", metav1.ListOptions{}); return err },
	} {
		theirs := eventOf(0, 1, 7)
		theirs.Name, theirs.EventTime = name, metav1.NewMicroTime(time.Now().Add(-time.Hour))
		server.answer = &theirs
		reported(find, nil)
		_, acked = reported(patch(theirs, ten), nil)
		assert.EqualValues(t, 3, acked.Count, name)

		after := eventOf(0, 1, 10)
		after.Name, after.EventTime = name, theirs.EventTime
		server.answer = &after
		reported(find, nil)
		_, acked = reported(patch(theirs, ten), nil)
		assert.EqualValues(t, 3, acked.Count, "%s: the base does not change after a patch", name)
	}
}
