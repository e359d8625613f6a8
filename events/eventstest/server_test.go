package eventstest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/events"
)

// newServer returns a server at noon that has one Event.
func newServer(t *testing.T) (*Server, *clocktesting.FakePassiveClock, *eventsv1.Event) {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(noon)
	s := &Server{Clock: clock}
	event, err := s.Create(t.Context(), valid())
	require.NoError(t, err)
	return s, clock, event
}

func TestServerCreates(t *testing.T) {
	s, _, event := newServer(t)
	want := valid()
	want.ResourceVersion, want.UID, want.CreationTimestamp = "1", "00000000-0000-4000-8000-000000000001", metav1.NewTime(noon)
	want.EventTime = event.EventTime // the same time, as it is read from JSON
	assert.True(t, event.EventTime.Equal(&metav1.MicroTime{Time: noon}))
	assert.Equal(t, want, event)
	assert.Equal(t, []eventsv1.Event{*want}, s.Events())

	_, err := s.Create(t.Context(), valid())
	assert.True(t, apierrors.IsAlreadyExists(err), err)
	elsewhere := valid()
	elsewhere.Namespace = "other"
	_, err = s.Create(t.Context(), elsewhere)
	require.NoError(t, err)
	generated := valid()
	generated.Name, generated.GenerateName = "", "cart-7-"
	event, err = s.Create(t.Context(), generated)
	require.NoError(t, err)
	assert.Regexp(t, `^cart-7-[a-z0-9]{5}$`, event.Name)
	assert.Len(t, s.Events(), 3)
}

// What goes over the wire is JSON.
func TestServerStoresWhatArrives(t *testing.T) {
	s := &Server{}
	sent := valid()
	sent.EventTime = metav1.NewMicroTime(noon.Add(1234567 * time.Nanosecond))
	sent.Note = "caf\xe9"
	event, err := s.Create(t.Context(), sent)
	require.NoError(t, err)
	assert.Equal(t, noon.Add(1234*time.Microsecond), event.EventTime.UTC())
	assert.Equal(t, "caf\uFFFD", event.Note)
	assert.Equal(t, "caf\xe9", sent.Note)

	event.Note = "changed"
	sent.Regarding.Name = "changed"
	assert.Equal(t, "caf\uFFFD", s.Events()[0].Note, "nobody shares its memory")
	assert.Equal(t, podRef.Name, s.Events()[0].Regarding.Name)
	s.Events()[0].Related.Name = "changed"
	assert.Equal(t, nodeRef.Name, s.Events()[0].Related.Name)
}

func TestServerRefuses(t *testing.T) {
	s, _, event := newServer(t)
	wrong := valid()
	wrong.Type = "Error"
	_, err := s.Create(t.Context(), wrong)
	require.True(t, apierrors.IsInvalid(err), err)
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	assert.Equal(t, "type", status.Status().Details.Causes[0].Field)

	for _, patch := range []string{`{"note":"other"}`, `{"metadata":{"uid":"other"}}`, `{"series":{"count":1,"lastObservedTime":"2026-03-01T12:00:00.000000Z"}}`} {
		_, err = s.Patch(t.Context(), event, []byte(patch))
		assert.True(t, apierrors.IsInvalid(err), err)
	}
	for _, patch := range []string{`{"metadata":{"name":"other"}}`, `{"metadata":{"namespace":"other"}}`, `no JSON`, `null`} {
		_, err = s.Patch(t.Context(), event, []byte(patch))
		assert.True(t, apierrors.IsBadRequest(err), "%s: %v", patch, err)
	}
	_, err = s.Patch(t.Context(), event, []byte(`{"metadata":{"resourceVersion":"77"}}`))
	assert.True(t, apierrors.IsConflict(err), err)
	_, err = s.Create(t.Context(), event)
	require.ErrorContains(t, err, "resourceVersion should not be set")
	_, err = s.Patch(t.Context(), &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "none"}}, []byte(`{}`))
	assert.True(t, apierrors.IsNotFound(err), err)

	for _, call := range []func(context.Context, *eventsv1.Event) (*eventsv1.Event, error){
		s.Create, s.Update, func(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) { return s.Patch(ctx, e, nil) },
	} {
		_, err = call(t.Context(), nil)
		require.ErrorContains(t, err, "a nil event")
		_, err = call(t.Context(), &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
		require.ErrorContains(t, err, `event "x" without a namespace`)
	}
	assert.Equal(t, []eventsv1.Event{*event}, s.Events(), "nothing has changed")
}

func TestServerPatches(t *testing.T) {
	s, _, event := newServer(t)
	looked, err := s.Patch(t.Context(), event, []byte(`{}`))
	require.NoError(t, err)
	assert.Equal(t, event, looked)

	patched, err := s.Patch(t.Context(), event, []byte(`{"metadata":{"resourceVersion":"1","annotations":{"a":"1","b":"2"}},
		"series":{"count":7,"lastObservedTime":"2026-03-01T12:01:00.000000Z"}}`))
	require.NoError(t, err)
	assert.Equal(t, "2", patched.ResourceVersion)
	assert.EqualValues(t, 7, patched.Series.Count)
	patched, err = s.Patch(t.Context(), event, []byte(`{"metadata":{"annotations":{"a":null,"c":"3"}}}`))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"b": "2", "c": "3"}, patched.Annotations)
	assert.EqualValues(t, 7, patched.Series.Count)
	assert.Equal(t, event.Note, patched.Note)
}

func TestServerUpdates(t *testing.T) {
	s, _, event := newServer(t)
	event.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(noon)}
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

// An Event lives for an hour after its last change. A patch that changes nothing is
// none.
func TestServerForgets(t *testing.T) {
	for name, row := range map[string]struct {
		ttl   time.Duration
		patch string
		alive bool // an hour after it was created
	}{
		"untouched":    {patch: ``},
		"looked at":    {patch: `{}`},
		"same again":   {patch: `{"note":"bound to worker-2"}`},
		"patched":      {patch: `{"metadata":{"annotations":{"a":"1"}}}`, alive: true},
		"longer":       {ttl: 2 * time.Hour, alive: true},
		"for ever":     {ttl: -1, alive: true},
		"much shorter": {ttl: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(noon)
			s := &Server{Clock: clock, TTL: row.ttl}
			event, err := s.Create(t.Context(), valid())
			require.NoError(t, err)
			if row.patch != "" {
				clock.SetTime(noon.Add(30 * time.Minute))
				_, err := s.Patch(t.Context(), event, []byte(row.patch))
				require.NoError(t, err)
			}
			clock.SetTime(noon.Add(time.Hour - time.Nanosecond))
			assert.Equal(t, row.ttl != time.Second, len(s.Events()) == 1)
			clock.SetTime(noon.Add(time.Hour))
			_, err = s.Patch(t.Context(), event, []byte(`{}`))
			assert.Equal(t, row.alive, err == nil)
			assert.Equal(t, row.alive, len(s.Events()) == 1)
			_, err = s.Create(t.Context(), valid())
			assert.Equal(t, row.alive, apierrors.IsAlreadyExists(err))
		})
	}
}

func TestServerLists(t *testing.T) {
	s := &Server{}
	for i := range 5 {
		event := valid()
		event.Name = fmt.Sprint("cart-", i)
		event.Labels = map[string]string{"odd": fmt.Sprint(i % 2)}
		if i == 4 {
			event.Namespace, event.Reason = "other", "Other"
		}
		_, err := s.Create(t.Context(), event)
		require.NoError(t, err)
	}
	names := func(list *eventsv1.EventList) (names []string) {
		for _, event := range list.Items {
			names = append(names, strings.TrimPrefix(event.Name, "cart-"))
		}
		return names
	}
	for _, row := range []struct {
		namespace, fields, labels string
		want                      []string
	}{
		{want: []string{"4", "0", "1", "2", "3"}}, // in the order of namespace and name
		{namespace: "shop", want: []string{"0", "1", "2", "3"}},
		{namespace: "none"},
		{fields: "reason=Other", want: []string{"4"}},
		{fields: "reportingController=example.com/scheduler,reason!=Other", want: []string{"0", "1", "2", "3"}},
		{fields: "reportingController=example.com/other"},
		{namespace: "shop", labels: "odd=1", want: []string{"1", "3"}},
	} {
		list, err := s.List(t.Context(), row.namespace, metav1.ListOptions{FieldSelector: row.fields, LabelSelector: row.labels})
		require.NoError(t, err)
		assert.Equal(t, row.want, names(list), "%+v", row)
	}

	var pages [][]string
	opts := metav1.ListOptions{Limit: 2}
	for {
		page, err := s.List(t.Context(), "", opts)
		require.NoError(t, err)
		pages = append(pages, names(page))
		if opts.Continue = page.Continue; opts.Continue == "" {
			break
		}
	}
	assert.Equal(t, [][]string{{"4", "0"}, {"1", "2"}, {"3"}}, pages)

	for _, opts := range []metav1.ListOptions{{FieldSelector: "reportingInstance=x"}, {FieldSelector: "x"}, {LabelSelector: "=,"}, {Continue: "%"}} {
		_, err := s.List(t.Context(), "", opts)
		assert.True(t, apierrors.IsBadRequest(err), "%+v: %v", opts, err)
	}
}

func TestServerKeepsRequests(t *testing.T) {
	s, clock, event := newServer(t)
	clock.SetTime(noon.Add(time.Second))
	_, _ = s.Patch(t.Context(), event, []byte(`{}`))
	_, _ = s.List(t.Context(), "shop", metav1.ListOptions{})
	busy := apierrors.NewTooManyRequests("slow down", 7)
	s.Answer(func(_ context.Context, r Request) error {
		if r.Verb == "patch" {
			return busy
		}
		return nil
	})
	_, err := s.Patch(t.Context(), event, []byte(`{"note":""}`))
	require.ErrorIs(t, err, busy)
	_, err = s.Update(t.Context(), event)
	require.NoError(t, err)
	s.Answer(nil)
	_, err = s.Patch(t.Context(), event, []byte(`{}`))
	require.NoError(t, err)

	var log []string
	for _, r := range s.Requests() {
		log = append(log, r.String())
	}
	assert.Equal(t, []string{
		"12:00:00 create shop/cart-7.0123456789abcdef",
		"12:00:01 patch shop/cart-7.0123456789abcdef",
		"12:00:01 list shop/",
		"12:00:01 patch shop/cart-7.0123456789abcdef: slow down",
		"12:00:01 update shop/cart-7.0123456789abcdef",
		"12:00:01 patch shop/cart-7.0123456789abcdef",
	}, log)
	assert.Equal(t, `{"note":""}`, s.Requests()[3].Body)
	assert.Contains(t, s.Requests()[0].Body, `"note":"bound to worker-2"`)
}

func TestServerEndsWithTheContext(t *testing.T) {
	s, _, event := newServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.Answer(func(ctx context.Context, _ Request) error { cancel(); <-ctx.Done(); return nil })
	_, err := s.Patch(ctx, event, []byte(`{"metadata":{"annotations":{"a":"1"}}}`))
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, s.Events()[0].Annotations, "it was not carried out")
	_, err = s.Patch(ctx, event, []byte(`{}`))
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.List(ctx, "", metav1.ListOptions{})
	require.ErrorIs(t, err, context.Canceled)
	assert.Len(t, s.Requests(), 2, "those that are made when it has ended are not sent")
}

func TestServerMayBeUsedConcurrently(t *testing.T) {
	s := &Server{}
	var wg sync.WaitGroup
	var won [10]int
	var mu sync.Mutex
	for range 8 {
		wg.Go(func() {
			for i := range won {
				event := valid()
				event.Name = fmt.Sprint("cart-", i)
				_, err := s.Create(t.Context(), event)
				if err == nil {
					mu.Lock()
					won[i]++
					mu.Unlock()
				} else {
					assert.True(t, apierrors.IsAlreadyExists(err), err)
				}
				_, err = s.Patch(t.Context(), event, []byte(`{"metadata":{"annotations":{"a":"1"}}}`))
				assert.NoError(t, err)
				s.Events()
				s.Requests()
				s.Answer(nil)
			}
		})
	}
	wg.Wait()
	for i := range won {
		assert.Equal(t, 1, won[i])
	}
}

// A broadcaster of the user's own, in real time.
func TestServerUnderABroadcaster(t *testing.T) {
	s := &Server{}
	b := events.NewBroadcaster(s)
	require.NoError(t, b.StartRecordingToSinkWithContext(t.Context()))
	recorder := b.NewRecorder(nil, controller)
	recorder.Eventf(&podRef, nil, "Normal", "Bound", "Schedule", "bound")
	require.NoError(t, b.Flush(t.Context()))
	assert.Len(t, s.Events(), 1)
	b.Shutdown()
}
