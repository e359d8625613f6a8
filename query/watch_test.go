package query

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/series"
)

// watching reads a watch step by step.
type watching struct {
	t    *testing.T
	next func() (Change, error, bool)
}

func startWatch(t *testing.T, reader *Reader, q Query) *watching {
	t.Helper()
	next, stop := iter.Pull2(reader.Watch(t.Context(), q))
	t.Cleanup(stop)
	return &watching{t, next}
}

// expect reads the next changes, such as "Added e001 3" with the count.
func (w *watching) expect(want ...string) {
	w.t.Helper()
	for _, want := range want {
		c, err, ok := w.next()
		require.NoError(w.t, err)
		require.True(w.t, ok, "the watch ended")
		got := string(c.Type)
		if c.Item != nil {
			got = fmt.Sprintf("%s %s %d", c.Type, c.Item.Name, c.Item.Count)
		}
		require.Equal(w.t, want, got)
	}
}

func (s *apiServer) put(name string, changes ...func(*eventsv1.Event)) {
	s.Put(newEvent(append([]func(*eventsv1.Event){named("shop", name)}, changes...)...))
}

func TestWatch(t *testing.T) {
	t.Parallel()
	for _, through := range []string{"events.k8s.io/v1", "core/v1"} {
		t.Run(through, func(t *testing.T) {
			t.Parallel()
			s := &apiServer{}
			reader := NewReader(s.start(t), Options{PageSize: 1, Clock: atTen})
			reader.unserved.Store(through == "core/v1")
			s.put("a")
			s.put("b")
			w := startWatch(t, reader, Query{})
			w.expect("Added a 1", "Added b 1", "Synced")
			s.put("a", recurred(2, 0))
			s.put("c")
			w.expect("Modified a 2", "Added c 1")
			require.NoError(t, s.Delete("shop", "b"))
			s.put("b")
			w.expect("Deleted b 1", "Added b 1")
			s.disconnect()
			s.put("a", recurred(3, 0))
			w.expect("Modified a 3")
		})
	}
}

// A watch selects by state in the client: a series that leaves the selection is news.
func TestWatchOfAState(t *testing.T) {
	t.Parallel()
	s := &apiServer{}
	reader := NewReader(s.start(t), Options{Clock: atTen})
	s.put("a")
	w := startWatch(t, reader, Query{States: []series.State{series.Ongoing}})
	w.expect("Synced")
	s.put("a", recurred(2, 0), labeled("Ongoing"))
	s.put("b")
	s.put("a", recurred(3, 0), labeled("Finished"))
	s.put("a", recurred(4, 0), labeled("Finished"))
	s.put("a", recurred(5, 0), labeled("Ongoing"))
	w.expect("Added a 2", "Left a 3", "Added a 5")
	require.NoError(t, s.Delete("shop", "b"))
	require.NoError(t, s.Delete("shop", "a"))
	w.expect("Deleted a 5")
	for _, request := range s.asked() {
		assert.Contains(t, request, " labels= ")
	}
}

// The server forgets the version of a watch. The watch lists again, and yields what
// changed meanwhile.
func TestWatchAfterGone(t *testing.T) {
	t.Parallel()
	s := &apiServer{}
	reader := NewReader(s.start(t), Options{PageSize: 2, Clock: atTen})
	for _, name := range []string{"a", "b", "c", "d"} {
		s.put(name)
	}
	w := startWatch(t, reader, Query{Reasons: []string{"Failed"}})
	w.expect("Added a 1", "Added b 1", "Added c 1", "Added d 1", "Synced")
	s.put("b", recurred(2, 0))
	w.expect("Modified b 2")
	listed := false
	s.answer = func(request string, _ metav1.ListOptions) *apierrors.StatusError {
		if !listed {
			if request == "watch events.k8s.io " { // while it is not connected
				s.put("a", recurred(2, 0))
				s.put("a", recurred(3, 0))
				require.NoError(t, s.Delete("shop", "b"))
				require.NoError(t, s.Delete("shop", "c"))
				s.put("c")
				s.put("e")
				s.compact()
			}
			listed = true
		}
		return nil
	}
	s.disconnect()
	w.expect("Modified a 3", "Deleted c 1", "Added c 1", "Added e 1", "Deleted b 2")
	s.put("f")
	w.expect("Added f 1")
}

// A list of a watch is from one version: the server reports the changes since then only.
func TestWatchWhoseFirstListExpires(t *testing.T) {
	t.Parallel()
	s := &apiServer{}
	reader := NewReader(s.start(t), Options{PageSize: 1, Clock: atTen})
	for _, name := range []string{"a", "b", "c"} {
		s.put(name)
	}
	expired := false
	s.answer = func(_ string, opts metav1.ListOptions) *apierrors.StatusError {
		if opts.Continue == "" || expired {
			return nil
		}
		expired = true
		s.put("a", recurred(2, 0))
		require.NoError(t, s.Delete("shop", "b"))
		err := apierrors.NewResourceExpired("too old")
		err.ErrStatus.Continue = "c2hvcC9h"
		return err
	}
	w := startWatch(t, reader, Query{})
	w.expect("Added a 1", "Added c 1", "Modified a 2", "Synced")
}

func TestWatchOfSeveralNamespaces(t *testing.T) {
	t.Parallel()
	s := &apiServer{}
	reader := NewReader(s.start(t), Options{Clock: atTen})
	nodeEvent := func(namespace, name string) *eventsv1.Event {
		return newEvent(named(namespace, name), about("Node", "", "n1", "n1"))
	}
	s.Put(nodeEvent("kube-system", "a"))
	w := startWatch(t, reader, Query{Objects: []Object{{Kind: "Node", Name: "n1", ClusterScoped: true}}, Role: Regarding})
	w.expect("Added a 1", "Synced")
	s.Put(nodeEvent("default", "b"))
	w.expect("Added b 1")
	s.put("pod")
	s.Put(nodeEvent("kube-system", "c"))
	w.expect("Added c 1")
}

func TestWatchErrors(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, answer func(string, metav1.ListOptions) *apierrors.StatusError) (*apiServer, *watching, func() []error) {
		t.Helper()
		s := &apiServer{}
		var warnings []error
		reader := NewReader(s.start(t), Options{Clock: atTen, OnWarning: func(err error) { warnings = append(warnings, err) }})
		s.put("a")
		s.answer = answer
		return s, startWatch(t, reader, Query{}), func() []error { return warnings }
	}
	t.Run("list denied", func(t *testing.T) {
		_, w, _ := start(t, deny("list"))
		_, err, _ := w.next()
		require.ErrorContains(t, err, "query: missing permission to list events.events.k8s.io in all namespaces")
		_, _, ok := w.next()
		assert.False(t, ok)
	})
	t.Run("watch denied", func(t *testing.T) {
		_, w, warnings := start(t, deny("watch"))
		w.expect("Added a 1", "Synced")
		_, err, _ := w.next()
		require.ErrorContains(t, err, "query: missing permission to watch events.events.k8s.io in all namespaces")
		require.ErrorAs(t, err, new(*PermissionError))
		assert.Empty(t, warnings(), "at once")
		_, _, ok := w.next()
		assert.False(t, ok)
	})
	for group, other := range map[string]string{"events.k8s.io": "core", "core": "events.k8s.io"} {
		t.Run("watch permitted in the group "+group+" only", func(t *testing.T) {
			s, w, warnings := start(t, deny("list "+group, "watch "+other))
			w.expect("Added a 1", "Synced")
			s.put("b")
			w.expect("Added b 1")
			s.disconnect()
			s.put("c")
			w.expect("Added c 1")
			assert.Empty(t, warnings())
		})
	}
	t.Run("invalid selector", func(t *testing.T) {
		s := &apiServer{}
		w := startWatch(t, NewReader(s.start(t), Options{}), Query{LabelSelector: "a in b"})
		_, err, _ := w.next()
		require.ErrorContains(t, err, "query: label selector")
	})
	t.Run("list without version", func(t *testing.T) {
		clients := fake.NewClientset()
		clients.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &eventsv1.EventList{}, nil
		})
		w := startWatch(t, NewReader(clients, Options{}), Query{})
		w.expect("Synced")
		_, err, _ := w.next()
		require.ErrorContains(t, err, "query: cannot watch events in all namespaces: the server returned no resourceVersion")
	})
	// A server that restarts refuses requests for a while, and denies some.
	t.Run("retried", func(t *testing.T) {
		var fail []*apierrors.StatusError
		s, w, warnings := start(t, func(request string, _ metav1.ListOptions) *apierrors.StatusError {
			if request != "watch events.k8s.io " || len(fail) == 0 {
				return nil
			}
			err := fail[0]
			fail = fail[1:]
			return err
		})
		w.expect("Added a 1", "Synced")
		s.put("b")
		w.expect("Added b 1")
		fail = []*apierrors.StatusError{
			apierrors.NewForbidden(eventsv1.Resource("events"), "", errors.New("no roles yet")),
			apierrors.NewGenericServerResponse(http.StatusNotFound, "GET", eventsv1.Resource("events"), "", "", 0, true),
		}
		s.disconnect()
		s.put("c")
		w.expect("Added c 1")
		require.Len(t, warnings(), 2)
		require.ErrorContains(t, warnings()[0], "query: missing permission to watch events.events.k8s.io in all namespaces")
		require.ErrorContains(t, warnings()[1], "query: cannot watch events in all namespaces: ")
	})
}

// A server that selects by no fields sends each change to both watches of a controller.
func TestWatchesThatSeeTheSameChange(t *testing.T) {
	t.Parallel()
	s := &apiServer{}
	s.answer = func(_ string, opts metav1.ListOptions) *apierrors.StatusError {
		if strings.Contains(opts.FieldSelector, "reportingController") {
			return apierrors.NewBadRequest("field label not supported: reportingController")
		}
		return nil
	}
	var changes []string
	q := Query{Controllers: []string{"c"}}
	reader := NewReader(s.start(t), Options{Clock: atTen})
	requests, err := q.plan(false)
	require.NoError(t, err)
	w := newWatcher(reader, &q, func(c Change) bool {
		changes = append(changes, string(c.Type))
		return true
	})
	for _, r := range requests {
		r.unselected = true
		w.lister.done = append(w.lister.done, listed{request: r})
	}
	event := newEvent(reported("", "c", "Failed"), func(e *eventsv1.Event) { e.UID, e.ResourceVersion = "u", "1" })
	for request := range requests {
		for _, gone := range []bool{false, true} {
			require.NoError(t, w.handle(t.Context(), &notice{request: request, event: event, gone: gone}))
		}
	}
	assert.Equal(t, []string{"Added", "Deleted"}, changes)
}

// A server that denied a watch for long does not restart.
func TestWatchThatIsDeniedForLong(t *testing.T) {
	t.Parallel()
	notices := make(chan notice, 1)
	f := &follower{listed: &listed{group: &group{resource: eventsv1.Resource("events")}}, notices: notices, established: true}
	denied := apierrors.NewForbidden(eventsv1.Resource("events"), "", errors.New("user dev"))
	backoff := wait.Backoff{}
	assert.True(t, f.retry(t.Context(), "watch", denied, &backoff))
	assert.False(t, (<-notices).fatal)
	f.deniedSince = f.deniedSince.Add(-deniedPatience)
	assert.False(t, f.retry(t.Context(), "watch", denied, &backoff))
	assert.True(t, (<-notices).fatal)
}

// timeline is what a watch yields in virtual time. It begins with the first notice.
type timeline struct {
	began   time.Time
	changes []string
}

// watch starts a watch that gets its Events from notices.
func (l *timeline) watch(t *testing.T, q Query) (notices chan<- notice, stop func()) {
	t.Helper()
	l.began, l.changes = time.Now(), nil
	w := newWatcher(&Reader{opts: Options{Clock: clock.RealClock{}}}, &q, func(c Change) bool {
		l.changes = append(l.changes, fmt.Sprintf("%s %s %s %s", time.Since(l.began), c.Type, c.Item.Name, c.Item.State))
		return true
	})
	w.lister.done = []listed{{request: request{labels: labels.Everything()}}}
	all := make(chan notice)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.loop(ctx, all) }()
	return all, func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	}
}

// TestWatchOfStaleSeries runs in virtual time. A series is stale if its recorder does not update the
// Event in time, and not if it does.
func TestWatchOfStaleSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l timeline
		put := func(notices chan<- notice, name, version string, count int32) {
			e := newEvent(named("shop", name), labeled("Ongoing"), recurred(count, 0))
			e.UID, e.ResourceVersion = types.UID(name), version
			e.EventTime, e.Series.LastObservedTime = metav1.NewMicroTime(l.began), metav1.NewMicroTime(time.Now())
			notices <- notice{event: e}
		}
		for _, test := range []struct {
			q    Query
			want []string
		}{
			{Query{}, []string{"0s Added a Ongoing", "0s Added b Ongoing", "20m0s Modified b Ongoing", "46m0.000000001s Stale a Unknown", "1h6m0.000000001s Stale b Unknown"}},
			{Query{States: []series.State{series.Ongoing}}, []string{"0s Added a Ongoing", "0s Added b Ongoing", "20m0s Modified b Ongoing", "46m0.000000001s Left a Unknown", "1h6m0.000000001s Left b Unknown"}},
			{Query{States: []series.State{series.Unknown}}, []string{"46m0.000000001s Added a Unknown", "1h6m0.000000001s Added b Unknown"}},
			{Query{At: time.Now()}, []string{"0s Added a Ongoing", "0s Added b Ongoing", "20m0s Modified b Unknown"}}, // its time is in the future
		} {
			if !test.q.At.IsZero() {
				test.q.At = time.Now()
			}
			notices, stop := l.watch(t, test.q)
			put(notices, "a", "1", 2)
			put(notices, "b", "2", 2)
			time.Sleep(20 * time.Minute)
			put(notices, "b", "3", 3)
			time.Sleep(time.Hour)
			synctest.Wait()
			stop()
			assert.Equal(t, test.want, l.changes)
		}
	})
}

// The clock of a recorder is ahead, or a query selects what comes later. The series are
// what they are when the time comes, although no Event changes.
func TestWatchOfTheFuture(t *testing.T) {
	const eps = "0.000000001s"
	const forever = time.Duration(math.MaxInt64)
	for _, test := range []struct {
		name  string
		q     func(began time.Time) Query
		count int32
		ahead time.Duration
		want  []string
	}{
		{"any", func(time.Time) Query { return Query{} }, 2, time.Hour,
			[]string{"0s Added a Unknown", "50m" + eps + " Modified a Ongoing", "1h46m" + eps + " Stale a Unknown"}},
		{"began", func(began time.Time) Query { return Query{Began: began} }, 2, time.Hour,
			[]string{"50m" + eps + " Added a Ongoing", "1h46m" + eps + " Stale a Unknown"}},
		{"a singleton", func(began time.Time) Query { return Query{Began: began} }, 1, time.Hour,
			[]string{"50m" + eps + " Added a Singleton"}},
		{"a little", func(began time.Time) Query { return Query{Began: began} }, 2, 5 * time.Minute,
			[]string{"0s Added a Ongoing", "51m" + eps + " Stale a Unknown"}},
		{"ongoing in a while", func(began time.Time) Query { return Query{Since: began.Add(20 * time.Minute)} }, 2, 0,
			[]string{"20m" + eps + " Added a Ongoing", "46m" + eps + " Left a Unknown"}},
		{"never", func(time.Time) Query { return Query{} }, 2, forever, []string{"0s Added a Unknown"}},
		{"later", func(began time.Time) Query { return Query{Since: began.Add(2 * time.Hour)} }, 2, 0, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l timeline
				notices, stop := l.watch(t, test.q(time.Now()))
				at := l.began.Add(test.ahead)
				if test.ahead == forever {
					at = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
				}
				e := newEvent(named("shop", "a"))
				if test.count > 1 {
					e = newEvent(named("shop", "a"), labeled("Ongoing"), recurred(test.count, 0))
					e.Series.LastObservedTime = metav1.NewMicroTime(at)
				}
				e.EventTime = metav1.NewMicroTime(at)
				e.UID, e.ResourceVersion = "a", "1"
				notices <- notice{event: e}
				time.Sleep(3 * time.Hour)
				synctest.Wait()
				stop()
				assert.Equal(t, test.want, l.changes)
			})
		})
	}
}

// An Event that changes all the time needs no more memory.
func TestWatchOfAnEventThatChangesOften(t *testing.T) {
	w := newWatcher(&Reader{opts: Options{Clock: atTen}}, &Query{}, func(Change) bool { return true })
	for i := range 10 {
		for _, name := range []string{"a", "b"} {
			e := newEvent(named("shop", name), labeled("Ongoing"), recurred(int32(i+2), 0))
			e.UID, e.ResourceVersion = types.UID(name), fmt.Sprint(i)
			e.Series.LastObservedTime.Time = e.EventTime.Add(time.Duration(i) * time.Millisecond)
			require.True(t, w.put(t.Context(), 0, 0, w.reader.item(w.query, e)))
		}
	}
	assert.Equal(t, 2, w.due.Len())
}

// A server that forgets each version at once is not listed again and again.
func TestWatchThatAlwaysExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset()
		var lists atomic.Int64
		var works atomic.Bool
		clients.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			lists.Add(1)
			return true, &eventsv1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		})
		stream := watch.NewFake()
		clients.PrependWatchReactor("events", func(clienttesting.Action) (bool, watch.Interface, error) {
			if !works.Load() {
				return true, nil, apierrors.NewResourceExpired("too old resource version")
			}
			return true, stream, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for _, err := range NewReader(clients, Options{}).Watch(ctx, Query{}) {
				_ = err // each list and each watch fails
			}
		}()
		time.Sleep(10 * time.Minute)
		assert.Less(t, lists.Load(), int64(40))
		works.Store(true)
		time.Sleep(10 * time.Minute)
		before := lists.Load()
		stream.Error(&apierrors.NewResourceExpired("too old resource version").ErrStatus)
		time.Sleep(time.Second)
		assert.Equal(t, before+1, lists.Load(), "the delay is short again")
	})
}
