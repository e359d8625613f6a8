package fakeapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// valid returns an Event that the server accepts.
func valid() *eventsv1.Event {
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: "shop", Name: "cart-7.0"},
		EventTime:           metav1.NewMicroTime(noon),
		ReportingController: "example.com/scheduler",
		ReportingInstance:   "scheduler-0",
		Action:              "Schedule",
		Reason:              "Bound",
		Note:                "bound to worker-2",
		Type:                "Normal",
	}
	event.Regarding.Kind, event.Regarding.Namespace, event.Regarding.Name = "Pod", "shop", "cart-7"
	event.Related = event.Regarding.DeepCopy()
	return event
}

// newServer returns a server at noon, and the one Event that it has.
func newServer(t *testing.T) (*Server, *clocktesting.FakePassiveClock, *eventsv1.Event) {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(noon)
	s := &Server{Clock: clock}
	event, err := s.Create(t.Context(), valid())
	require.NoError(t, err)
	return s, clock, event
}

// The rules of eventstest.TestSink say what a server does with valid requests. The tests
// here are about everything else.
func TestCreate(t *testing.T) {
	s, _, event := newServer(t)
	want := valid()
	want.ResourceVersion, want.UID, want.CreationTimestamp = "1", "00000000-0000-4000-8000-000000000001", metav1.NewTime(noon)
	want.EventTime = event.EventTime // the same time, read from JSON
	assert.True(t, event.EventTime.Equal(&metav1.MicroTime{Time: noon}))
	assert.Equal(t, want, event)
	assert.Equal(t, []eventsv1.Event{*want}, s.Events())
	assert.Equal(t, want, s.Get("shop", want.Name))
	assert.Nil(t, s.Get("other", want.Name))

	sent := valid()
	sent.Name, sent.GenerateName = "", "cart-7-"
	sent.EventTime = metav1.NewMicroTime(noon.Add(1234567 * time.Nanosecond))
	sent.Note = "caf\xe9"
	event, err := s.Create(t.Context(), sent)
	require.NoError(t, err)
	assert.Regexp(t, `^cart-7-[a-z0-9]{5}$`, event.Name)
	assert.Equal(t, noon.Add(1234*time.Microsecond), event.EventTime.UTC(), "requests are JSON")
	assert.Equal(t, "caf\uFFFD", event.Note)

	sent.Regarding.Name, event.Note, s.Events()[1].Related.Name = "changed", "changed", "changed"
	stored := s.Get("shop", event.Name)
	assert.Equal(t, "cart-7", stored.Regarding.Name, "nobody shares memory with the server")
	assert.Equal(t, "caf\uFFFD", stored.Note)
	assert.Equal(t, "cart-7", stored.Related.Name)
}

func TestInvalidRequestsAreRejected(t *testing.T) {
	s, _, event := newServer(t)
	invalid := valid()
	invalid.Type = "Error"
	_, err := s.Create(t.Context(), invalid)
	assertInvalid(t, err, "type")
	_, err = s.Create(t.Context(), event)
	require.ErrorContains(t, err, "resourceVersion should not be set")

	for patch, field := range map[string]string{
		`{"regarding":{"name":"other"}}`:                                          "regarding",
		`{"related":null}`:                                                        "related",
		`{"type":"Warning"}`:                                                      "type",
		`{"reason":"Other"}`:                                                      "reason",
		`{"action":"Other"}`:                                                      "action",
		`{"note":"other"}`:                                                        "note",
		`{"eventTime":"2026-03-01T12:01:00.000000Z"}`:                             "eventTime",
		`{"reportingController":"other"}`:                                         "reportingController",
		`{"reportingInstance":"other"}`:                                           "reportingInstance",
		`{"deprecatedCount":1}`:                                                   "deprecatedCount",
		`{"deprecatedSource":{"host":"h"}}`:                                       "deprecatedSource",
		`{"deprecatedFirstTimestamp":"2026-03-01T12:00:00Z"}`:                     "deprecatedFirstTimestamp",
		`{"deprecatedLastTimestamp":"2026-03-01T12:00:00Z"}`:                      "deprecatedLastTimestamp",
		`{"metadata":{"uid":"other"}}`:                                            "metadata.uid",
		`{"metadata":{"annotations":{"not a key":"1"}}}`:                          "metadata.annotations",
		`{"series":{"count":1,"lastObservedTime":"2026-03-01T12:00:00.000000Z"}}`: "series.count",
	} {
		_, err = s.Patch(t.Context(), event, []byte(patch))
		assertInvalid(t, err, field)
	}
	for _, patch := range []string{`{"metadata":{"name":"other"}}`, `{"metadata":{"namespace":"other"}}`, `no JSON`, `null`} {
		_, err = s.Patch(t.Context(), event, []byte(patch))
		assert.True(t, apierrors.IsBadRequest(err), "%s: %v", patch, err)
	}
	patch := func(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) { return s.Patch(ctx, e, nil) }
	for _, call := range []func(context.Context, *eventsv1.Event) (*eventsv1.Event, error){s.Create, s.Update, patch} {
		_, err = call(t.Context(), nil)
		require.ErrorContains(t, err, "a nil Event")
		_, err = call(t.Context(), &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
		require.ErrorContains(t, err, `Event "x" without a namespace`)
	}
	assert.Equal(t, []eventsv1.Event{*event}, s.Events(), "nothing has changed")
}

// assertInvalid checks that an error is Invalid because of one field.
func assertInvalid(t *testing.T, err error, field string) {
	t.Helper()
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	assert.True(t, apierrors.IsInvalid(err), err)
	require.Len(t, status.ErrStatus.Details.Causes, 1, err)
	assert.Equal(t, field, status.ErrStatus.Details.Causes[0].Field)
}

func TestUpdate(t *testing.T) {
	s, _, event := newServer(t)
	event.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(noon)}
	event.EventTime.Time = event.EventTime.Add(time.Nanosecond) // lost on the way
	updated, err := s.Update(t.Context(), event)
	require.NoError(t, err)
	assert.Equal(t, "2", updated.ResourceVersion)
	_, err = s.Update(t.Context(), event)
	assert.True(t, apierrors.IsConflict(err), err)
	other := valid()
	other.Name = "other"
	_, err = s.Update(t.Context(), other)
	require.NoError(t, err)
	assert.Len(t, s.Events(), 2)
	require.NoError(t, s.Delete("shop", "other"))
	assert.Len(t, s.Events(), 1)
	assert.True(t, apierrors.IsNotFound(s.Delete("shop", "other")))
}

func TestOnlyChangesRenewTheTTL(t *testing.T) {
	for patch, renews := range map[string]bool{
		`{}`:                                     false,
		`{"note":"bound to worker-2"}`:           false,
		`{"metadata":{"annotations":{"a":"1"}}}`: true,
	} {
		s, clock, event := newServer(t)
		s.TTL = time.Hour
		clock.SetTime(noon.Add(30 * time.Minute))
		_, err := s.Patch(t.Context(), event, []byte(patch))
		require.NoError(t, err)
		clock.SetTime(noon.Add(time.Hour - time.Nanosecond))
		assert.Len(t, s.Events(), 1)
		clock.SetTime(noon.Add(time.Hour))
		_, err = s.Patch(t.Context(), event, []byte(`{}`))
		assert.Equal(t, !renews, apierrors.IsNotFound(err), patch)
		assert.Equal(t, renews, len(s.Events()) == 1, patch)
		_, err = s.Create(t.Context(), valid())
		assert.Equal(t, renews, apierrors.IsAlreadyExists(err), patch)
	}
}

func TestList(t *testing.T) {
	s := &Server{}
	for i := range 5 {
		event := valid()
		event.Name = fmt.Sprint(i)
		event.Labels = map[string]string{"odd": fmt.Sprint(i % 2)}
		if i == 4 {
			event.Namespace, event.Reason = "other", "Other"
		}
		_, err := s.Create(t.Context(), event)
		require.NoError(t, err)
	}
	for _, row := range []struct {
		namespace, fields, labels string
		limit                     int64
		want                      string // the names, and a comma for each further page
	}{
		{want: "40123"}, // by namespace and name
		{namespace: "shop", want: "0123"},
		{namespace: "none"},
		{limit: 2, want: "40,12,3"},
		{fields: "reason=Other", want: "4"},
		{fields: "reportingController=example.com/scheduler,reason!=Other", want: "0123"},
		{fields: "reportingController=example.com/other"},
		{namespace: "shop", labels: "odd=1", want: "13"},
	} {
		opts := metav1.ListOptions{FieldSelector: row.fields, LabelSelector: row.labels, Limit: row.limit}
		var got strings.Builder
		for page := 0; page == 0 || opts.Continue != ""; page++ {
			list, err := s.List(t.Context(), row.namespace, opts)
			require.NoError(t, err)
			for _, event := range list.Items {
				got.WriteString(event.Name)
			}
			if opts.Continue = list.Continue; opts.Continue != "" {
				got.WriteByte(',')
			}
		}
		assert.Equal(t, row.want, got.String(), "%+v", row)
	}
	for _, opts := range []metav1.ListOptions{{FieldSelector: "reportingInstance=x"}, {FieldSelector: "x"}, {LabelSelector: "=,"}, {Continue: "%"}} {
		_, err := s.List(t.Context(), "", opts)
		assert.True(t, apierrors.IsBadRequest(err), "%+v: %v", opts, err)
	}
}

func TestHooks(t *testing.T) {
	s, clock, event := newServer(t)
	clock.SetTime(noon.Add(time.Second))
	_, _ = s.List(t.Context(), "shop", metav1.ListOptions{})
	s.Before(func(_ context.Context, r Request) error {
		if r.Verb == "patch" {
			return apierrors.NewTooManyRequests("slow down", 7)
		}
		return nil
	})
	_, err := s.Patch(t.Context(), event, []byte(`{"note":""}`))
	require.True(t, apierrors.IsTooManyRequests(err), err)
	_, err = s.Update(t.Context(), event)
	require.NoError(t, err)
	s.Before(nil)

	var answers []error
	s.After(func(_ context.Context, r Request) error {
		answers = append(answers, r.Err)
		return errors.New("connection reset")
	})
	_, err = s.Patch(t.Context(), event, []byte(`{"metadata":{"annotations":{"a":"1"}}}`))
	require.EqualError(t, err, "connection reset")
	assert.Equal(t, "1", s.Events()[0].Annotations["a"], "the request took effect")
	_, err = s.Create(t.Context(), valid())
	require.EqualError(t, err, "connection reset")
	require.Len(t, answers, 2)
	require.NoError(t, answers[0])
	require.True(t, apierrors.IsAlreadyExists(answers[1]))
	s.After(nil)
	_, err = s.Patch(t.Context(), event, []byte(`{}`))
	require.NoError(t, err)

	var log []string
	for _, r := range s.Requests() {
		log = append(log, r.String())
	}
	assert.Equal(t, []string{
		"12:00:00 create shop/cart-7.0",
		"12:00:01 list shop/",
		"12:00:01 patch shop/cart-7.0: slow down",
		"12:00:01 update shop/cart-7.0",
		"12:00:01 patch shop/cart-7.0: connection reset",
		"12:00:01 create shop/cart-7.0: connection reset",
		"12:00:01 patch shop/cart-7.0",
	}, log)
	assert.Equal(t, `{"note":""}`, s.Requests()[2].Body)
	assert.Contains(t, s.Requests()[0].Body, `"note":"bound to worker-2"`)
}

func TestOnChangeSeesEveryChange(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	var log []string
	versionOf := func(event *eventsv1.Event) string {
		if event == nil {
			return "none"
		}
		return event.ResourceVersion
	}
	s := &Server{Clock: clock, TTL: time.Hour, OnChange: func(verb string, before, after *eventsv1.Event) {
		log = append(log, fmt.Sprint(verb, " ", versionOf(before), " to ", versionOf(after)))
	}}
	event, err := s.Create(t.Context(), valid())
	require.NoError(t, err)
	for _, patch := range []string{`{}`, `{"metadata":{"annotations":{"a":"1"}}}`} {
		_, err = s.Patch(t.Context(), event, []byte(patch))
		require.NoError(t, err)
	}
	strange := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: event.Name}, Note: "no checks"}
	put := s.Put(strange)
	assert.Equal(t, s.Get("shop", event.Name), put)
	assert.Equal(t, event.UID, put.UID, "it is still the same Event")
	assert.Empty(t, strange.ResourceVersion, "it stores a copy")
	_, err = s.Update(t.Context(), event)
	require.True(t, apierrors.IsConflict(err), err)
	require.NoError(t, s.Delete("shop", event.Name))
	assert.NotEqual(t, event.UID, s.Put(strange).UID, "it is another Event")
	clock.SetTime(noon.Add(time.Hour))
	assert.Empty(t, s.Events())
	assert.Equal(t, []string{"create none to 1", "patch 1 to 2", "put 2 to 3", "delete 3 to none", "put none to 4", "expire 4 to none"}, log)
}

// A server carries out a request that it has received, whether or not the client waits.
func TestEndedContext(t *testing.T) {
	s, _, event := newServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.Before(func(context.Context, Request) error { cancel(); return nil })
	_, err := s.Patch(ctx, event, []byte(`{"metadata":{"annotations":{"a":"1"}}}`))
	require.NoError(t, err)
	assert.Equal(t, "1", s.Events()[0].Annotations["a"])
	_, err = s.List(ctx, "", metav1.ListOptions{})
	require.ErrorIs(t, err, context.Canceled)
	assert.Len(t, s.Requests(), 2, "a client does not send the last one")
}
