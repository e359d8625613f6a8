package query

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/internal/apigroup"
	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

// occurrence is an event of the kubelet about one Pod.
type occurrence struct {
	at                time.Duration
	reason, container string
}

// kubelet writes Events as client-go's legacy recorder does.
type kubelet struct {
	clock      *clocktesting.FakeClock
	correlator *record.EventCorrelator
	events     map[string]*corev1.Event // by name, as the server has them
}

func newKubelet() *kubelet {
	c := clocktesting.NewFakeClock(t0)
	return &kubelet{c, record.NewEventCorrelator(c), make(map[string]*corev1.Event)}
}

func (k *kubelet) emit(t *testing.T, o occurrence) {
	t.Helper()
	k.clock.SetTime(t0.Add(o.at))
	now := metav1.NewTime(k.clock.Now().Truncate(time.Second))
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s.%s.%x", strings.ToLower(o.reason), o.container, k.clock.Now().UnixNano())},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-0", UID: "u", FieldPath: o.container},
		Type:           "Warning", Reason: o.reason, Message: o.reason + " of " + o.container,
		Source: corev1.EventSource{Component: "kubelet", Host: "n1"}, Count: 1, FirstTimestamp: now, LastTimestamp: now,
	}
	result, err := k.correlator.EventCorrelate(e)
	require.NoError(t, err)
	if result.Skip {
		return
	}
	k.events[result.Event.Name] = result.Event
	k.correlator.UpdateState(result.Event)
}

// items returns the series of all Events.
func (k *kubelet) items(at time.Duration) []*Item {
	var all []*Item
	for _, name := range slices.Sorted(maps.Keys(k.events)) {
		all = append(all, FromEvent(apigroup.FromCore(k.events[name]), t0.Add(at)))
	}
	return all
}

// loop returns the occurrences of some events until a time.
type loop func(r *rand.Rand, end time.Duration) []occurrence

// every returns the occurrences of an event at about equal intervals.
func every(gap time.Duration, reason, container string) loop {
	return func(r *rand.Rand, end time.Duration) (all []occurrence) {
		for at := rand01(r, gap); at < end; at += gap + rand01(r, gap/20) {
			all = append(all, occurrence{at, reason, container})
		}
		return all
	}
}

// backOff returns those of a container that runs for 5 seconds: the kubelet reports the back-off
// at each sync.
func backOff(container string) loop {
	return func(r *rand.Rand, end time.Duration) (all []occurrence) {
		wait := 10 * time.Second
		for at := rand01(r, time.Minute); at < end; at += 5 * time.Second {
			all = append(all, occurrence{at, "Pulled", container}, occurrence{at, "Started", container})
			for over := at + wait; at < over; at += 10*time.Second + rand01(r, 5*time.Second) {
				all = append(all, occurrence{at, "BackOff", container})
			}
			wait = min(2*wait, 5*time.Minute)
		}
		return all
	}
}

func rand01(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// TestLoopsThatShareATokenBucket looks each minute at loops about one Pod, and for half an hour after
// they have ended.
func TestLoopsThatShareATokenBucket(t *testing.T) {
	workload.Large(t)
	const runs, end, recently = 4, 3 * time.Hour, 6 * time.Minute
	for name, loops := range map[string][]loop{
		"one back-off":                       {backOff("a")},
		"two containers in back-off":         {backOff("a"), backOff("b")},
		"back-off and an unready sidecar":    {backOff("a"), every(10*time.Second, "Unhealthy", "b")},
		"FailedMount and unready containers": {every(2*time.Minute, "FailedMount", ""), every(10*time.Second, "Unhealthy", "b")},
	} {
		t.Run(name, func(t *testing.T) {
			looks, alone, settled := 0, 0, 0
			for run := range runs {
				r := rand.New(rand.NewPCG(uint64(run), 47))
				var all []occurrence
				for _, loop := range loops {
					all = append(all, loop(r, end)...)
				}
				slices.SortStableFunc(all, func(a, b occurrence) int { return cmp.Compare(a.at, b.at) })
				k := newKubelet()
				last := make(map[occurrence]time.Duration)
				for at := time.Minute; at < end+30*time.Minute; at += time.Minute {
					for ; len(all) > 0 && all[0].at <= at; all = all[1:] {
						k.emit(t, all[0])
						last[occurrence{0, all[0].reason, all[0].container}] = all[0].at
					}
					over := at > end+22*time.Minute
					items := k.items(at)
					Settle(items)
					for _, item := range items {
						single := FromEvent(item.Event, item.At)
						assert.Equal(t, single.State == series.Ongoing, item.State == series.Ongoing || !item.Followed.IsZero())
						if over {
							assert.Equal(t, item.Count > 1, item.State == series.Quiet, "%s after %s: %s", item.Key.Reason, at, item.State)
						}
						looks++
						recurs := at-last[occurrence{0, item.Key.Reason, item.Key.Regarding.FieldPath}] <= recently
						if recurs && single.State == series.Quiet {
							alone++
						}
						if recurs && item.State == series.Quiet || !item.Followed.IsZero() {
							settled++
						}
					}
				}
			}
			t.Logf("%d looks: %.1f %% falsely Quiet on their own, %.1f %% with their siblings", looks, 100*float64(alone)/float64(looks), 100*float64(settled)/float64(looks))
			assert.LessOrEqual(t, settled, looks/100)
			if len(loops) > 1 {
				assert.Greater(t, alone, looks/50, "the test has no contention")
			}
		})
	}
}

func (s *apiServer) putLegacy(name, reason string, count int32, first, last time.Duration) {
	s.put(name, legacy(count, first, last), func(e *eventsv1.Event) { e.Reason = reason })
}

// The states are the same with and without selectors that leave out the other Events.
func TestListOfLoopsThatShareATokenBucket(t *testing.T) {
	s := &apiServer{}
	reader := NewReader(s.start(t), Options{})
	const m = time.Minute
	s.putLegacy("a.old", "BackOff", 30, 0, 5*m)
	s.putLegacy("b.held", "Unhealthy", 30, 0, 20*m)
	s.putLegacy("c.live", "FailedMount", 90, 0, 58*m)
	s.putLegacy("d.new", "Killing", 90, 50*m, 58*m)
	s.put("e.other", legacy(30, 0, 20*m), about("Pod", "shop", "other", "u1"))
	s.put("f.component", legacy(30, 0, 20*m), func(e *eventsv1.Event) { e.DeprecatedSource.Host = "n2" })
	for name, want := range map[string]struct {
		q      Query
		states map[string]series.State
		lists  int
	}{
		"all":     {Query{}, map[string]series.State{"a.old": series.Unknown, "b.held": series.Unknown, "c.live": series.Ongoing, "d.new": series.Ongoing, "e.other": series.Quiet, "f.component": series.Quiet}, 1},
		"reason":  {Query{Reasons: []string{"Unhealthy"}}, map[string]series.State{"b.held": series.Unknown}, 2},
		"type":    {Query{Types: []string{"Warning"}, States: []series.State{series.Unknown}}, map[string]series.State{"a.old": series.Unknown, "b.held": series.Unknown}, 3},
		"quiet":   {Query{States: []series.State{series.Quiet}}, map[string]series.State{"e.other": series.Quiet, "f.component": series.Quiet}, 1},
		"ongoing": {Query{States: []series.State{series.Ongoing}, Types: []string{"Warning"}}, map[string]series.State{"c.live": series.Ongoing, "d.new": series.Ongoing}, 2},
		"later":   {Query{At: t0.Add(74 * m)}, map[string]series.State{"a.old": series.Quiet, "b.held": series.Quiet, "c.live": series.Quiet, "d.new": series.Quiet, "e.other": series.Quiet, "f.component": series.Quiet}, 1},
	} {
		if want.q.At.IsZero() {
			want.q.At = t0.Add(60 * m)
		}
		got := make(map[string]series.State)
		for item, err := range Sort(reader.List(t.Context(), want.q), ByState, 0) {
			require.NoError(t, err)
			got[item.Name] = item.State
		}
		assert.Equal(t, want.states, got, name)
		assert.Len(t, s.asked(), want.lists, name)
	}
	item, err := reader.Get(t.Context(), "shop", "b.held")
	require.NoError(t, err)
	assert.True(t, item.LowerBound())

	// A watch decides when its first lists are complete.
	reader = NewReader(s.start(t), Options{Clock: clocktesting.NewFakePassiveClock(t0.Add(60 * m))})
	startWatch(t, reader, Query{Types: []string{"Warning"}}).expect("Added a.old 30", "Added b.held 30", "Added c.live 90", "Added d.new 90", "Added e.other 30", "Added f.component 30", "Synced")
	w := startWatch(t, reader, Query{States: []series.State{series.Unknown}, Reasons: []string{"BackOff"}})
	w.expect("Added a.old 30", "Synced")
	s.putLegacy("g.more", "BackOff", 31, 2*m, 6*m)
	w.expect("Added g.more 31")
	require.NoError(t, s.Delete("shop", "a.old"))
	w.expect("Deleted a.old 30")
}

// TestWatchOfLoopsThatShareATokenBucket runs in virtual time: b is written each 5 minutes for an
// hour, and a is not.
func TestWatchOfLoopsThatShareATokenBucket(t *testing.T) {
	for _, test := range []struct {
		q    Query
		want []string
	}{
		{Query{}, []string{"0s Added a Ongoing", "11m0.000000001s Stale a Unknown", "1h6m0.000000001s Stale a Quiet"}},
		{Query{States: []series.State{series.Quiet}}, []string{"1h6m0.000000001s Added a Quiet"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var l timeline
			notices, stop := l.watch(t, test.q)
			put := func(name string, count int32, last time.Time) {
				e := newEvent(named("shop", name), legacy(count, 0, 0))
				e.UID, e.ResourceVersion = types.UID(name), fmt.Sprint(count)
				e.DeprecatedFirstTimestamp, e.DeprecatedLastTimestamp = metav1.NewTime(l.began.Add(-time.Minute)), metav1.NewTime(last)
				notices <- notice{event: e}
			}
			put("a", 30, time.Now())
			for i := range 12 {
				put("b", int32(100+i), time.Now())
				time.Sleep(5 * time.Minute)
			}
			time.Sleep(30 * time.Minute)
			synctest.Wait()
			stop()
			ofA := slices.DeleteFunc(l.changes, func(c string) bool { return strings.Fields(c)[2] != "a" })
			assert.Equal(t, test.want, ofA)
		})
	}
}

// TestFollowed looks at a series that is ongoing on its own, beside a later Event about the object.
func TestFollowed(t *testing.T) {
	const s, m = time.Second, time.Minute
	by := func(controller, reason, path string, first time.Duration) func(*eventsv1.Event) {
		return func(e *eventsv1.Event) {
			e.Name, e.Reason, e.ReportingController, e.Regarding.FieldPath = "z."+reason, reason, controller, path
			e.EventTime = micro(first)
		}
	}
	changes := func(changes ...func(*eventsv1.Event)) func(*eventsv1.Event) {
		return func(e *eventsv1.Event) {
			for _, change := range changes {
				change(e)
			}
		}
	}
	tools := changes(by("scheduler", "FailedScheduling", "", 0), recurred(3, 20*s))
	old := changes(legacy(3, 0, 20*s), func(e *eventsv1.Event) { e.Regarding.FieldPath = "a" })
	kubelet := func(reason, path string, count int32, first, last time.Duration) func(*eventsv1.Event) {
		return changes(legacy(count, first, last), func(e *eventsv1.Event) { e.Name, e.Reason, e.Regarding.FieldPath = "z."+reason, reason, path })
	}
	for name, test := range map[string]struct {
		series func(*eventsv1.Event)
		others []func(*eventsv1.Event)
		want   series.State
	}{
		"alone":                              {tools, nil, series.Ongoing},
		"scheduled":                          {tools, []func(*eventsv1.Event){by("scheduler", "Scheduled", "", 30*s)}, series.Unknown},
		"another instance":                   {tools, []func(*eventsv1.Event){changes(by("scheduler", "Scheduled", "", 30*s), func(e *eventsv1.Event) { e.ReportingInstance = "x" })}, series.Unknown},
		"the same again":                     {tools, []func(*eventsv1.Event){by("scheduler", "FailedScheduling", "", 7*m)}, series.Unknown},
		"before":                             {tools, []func(*eventsv1.Event){by("scheduler", "Scheduled", "", 10*s)}, series.Ongoing},
		"another controller":                 {tools, []func(*eventsv1.Event){by("kubelet", "Pulling", "", 30*s)}, series.Ongoing},
		"another object":                     {tools, []func(*eventsv1.Event){changes(by("scheduler", "Scheduled", "", 30*s), about("Pod", "shop", "x", "y"))}, series.Ongoing},
		"the Event says so":                  {changes(tools, labeled("Ongoing")), []func(*eventsv1.Event){by("scheduler", "Scheduled", "", 30*s)}, series.Ongoing},
		"legacy, in the same second":         {old, []func(*eventsv1.Event){kubelet("Pulled", "a", 1, 20*s, 20*s)}, series.Unknown},
		"legacy, of the whole object":        {old, []func(*eventsv1.Event){kubelet("Evicted", "", 1, 30*s, 30*s)}, series.Unknown},
		"legacy, of another container":       {old, []func(*eventsv1.Event){kubelet("Pulled", "b", 1, 30*s, 30*s)}, series.Ongoing},
		"legacy, a retry with another note":  {old, []func(*eventsv1.Event){kubelet("Pulled", "a", 1, 10*s, 10*s), kubelet("Pulled", "a", 1, 30*s, 30*s)}, series.Ongoing},
		"legacy, a series that began before": {old, []func(*eventsv1.Event){kubelet("Pulled", "a", 9, 10*s, 5*m)}, series.Ongoing},
		"legacy, less often than every 36 m": {legacy(2, -46*m, 0), nil, series.Unknown},
		"legacy, every 36 m":                 {legacy(3, -72*m, 0), nil, series.Ongoing},
	} {
		at := t0.Add(8 * m)
		items := []*Item{FromEvent(newEvent(test.series), at)}
		for _, other := range test.others {
			items = append(items, FromEvent(newEvent(other), at))
		}
		for range 2 {
			Settle(items)
			assert.Equal(t, test.want, items[0].State, name)
			assert.False(t, items[0].Stale(), name)
		}
	}
}

// A list finds the other Event although the query does not select it, in any order, and so does a sorted one.
func TestListOfFollowed(t *testing.T) {
	s := &apiServer{}
	failed := newEvent(named("shop", "b"), reported("scheduler", "", "FailedScheduling"), recurred(3, 20*time.Second))
	scheduled := newEvent(named("shop", "c"), reported("scheduler", "", "Scheduled"), func(e *eventsv1.Event) { e.Type, e.EventTime = "Normal", micro(30*time.Second) })
	clients := s.start(t)
	reader := NewReader(clients, Options{Clock: atTen})
	s.Put(failed)
	assert.Equal(t, []string{"b"}, names(t, reader.List(t.Context(), Query{States: []series.State{series.Ongoing}, Types: []string{"Warning"}})))
	w := startWatch(t, reader, Query{States: []series.State{series.Ongoing}})
	w.expect("Added b 3", "Synced")
	s.Put(scheduled)
	w.expect("Left b 3")
	assert.Empty(t, names(t, reader.List(t.Context(), Query{States: []series.State{series.Ongoing}, Types: []string{"Warning"}})))
	for item, err := range Sort(reader.List(t.Context(), Query{Reasons: []string{"FailedScheduling"}}), ByLast, 0) {
		require.NoError(t, err)
		assert.Equal(t, series.Unknown, item.State)
		assert.True(t, item.Followed.Equal(t0.Add(30*time.Second)))
	}

	// It lists no more namespaces than the query.
	for n := range maxObjectRequests + 1 {
		s.Put(newEvent(named("shop", fmt.Sprint(n)), about("Pod", "shop", fmt.Sprint(n), ""), recurred(3, time.Minute)))
	}
	s.answer = func(request string, _ metav1.ListOptions) *apierrors.StatusError {
		if strings.HasSuffix(request, " ") {
			return apierrors.NewForbidden(eventsv1.Resource("events"), "", nil)
		}
		return nil
	}
	// The last write was long after the latest occurrence: tools/events wrote the end. A label is no write of it.
	written := func(fields string, after time.Duration) func(*eventsv1.Event) {
		return func(e *eventsv1.Event) {
			at := seconds(after)
			e.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &at, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}}
		}
	}
	s.Put(newEvent(named("shop", "ended"), about("Pod", "shop", "x", ""), recurred(3, 0), written(`{"f:series":{}}`, 6*time.Minute)))
	s.Put(newEvent(named("shop", "refreshed"), about("Pod", "shop", "y", ""), recurred(3, 0), written(`{"f:series":{}}`, 5*time.Minute)))
	s.Put(newEvent(named("shop", "labeled"), about("Pod", "shop", "z", ""), recurred(3, 0), written(`{"f:metadata":{}}`, 9*time.Minute)))
	for _, options := range []Options{{Clock: atTen}, {Clock: atTen, ManagedFields: true}} {
		ended := NewReader(clients, options)
		quiet := Query{Namespaces: []string{"shop"}, States: []series.State{series.Quiet}}
		assert.Equal(t, []string{"ended"}, names(t, Sort(ended.List(t.Context(), quiet), ByState, 0)))
		startWatch(t, ended, quiet).expect("Added ended 3", "Synced")
		item, err := ended.Get(t.Context(), "shop", "ended")
		require.NoError(t, err)
		assert.Equal(t, series.Quiet, item.State)
		assert.Zero(t, item.NextWrite)
		assert.Equal(t, options.ManagedFields, len(item.Event.ManagedFields) > 0)
	}
	require.NoError(t, s.Delete("shop", "refreshed"))
	require.NoError(t, s.Delete("shop", "labeled"))

	pods := Query{Objects: []Object{{Kind: "Pod", Namespace: "shop"}}, Role: Regarding, Types: []string{"Warning"}, States: []series.State{series.Ongoing}}
	assert.Len(t, names(t, reader.List(t.Context(), pods)), maxObjectRequests+1)
}
