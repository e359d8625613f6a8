package eventstest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// recordedAtNoon returns a recorder with three events.
func recordedAtNoon() *Recorder {
	r := NewRecorderWithOptions(nil, Options{Clock: clocktesting.NewFakePassiveClock(noon)})
	r.Eventf(pod, node, corev1.EventTypeNormal, "Bound", "Schedule", "bound to worker-2")
	r.AnnotatedEventf(pod, nil, map[string]string{"attempt": "1"}, corev1.EventTypeWarning, "Unhealthy", "KillContainer", "probe failed: HTTP 503")
	r.Eventf(node, nil, corev1.EventTypeNormal, "Maintenance", "Drain", "evicted 14 pods")
	return r
}

// The events of recordedAtNoon in a report.
const (
	first  = "\n    #1 12:00:00 Normal Bound (Schedule) Pod shop/cart-7, related Node worker-2: \"bound to worker-2\""
	second = "\n    #2 12:00:00 Warning Unhealthy (KillContainer) Pod shop/cart-7: \"probe failed: HTTP 503\" map[attempt:1]"
	third  = "\n    #3 12:00:00 Normal Maintenance (Drain) Node worker-2: \"evicted 14 pods\""
	all    = "\n  recorded (3):" + first + second + third
)

func TestWantMatches(t *testing.T) {
	podNamed := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-7", UID: uid}}
	}
	r := recordedAtNoon()
	for name, row := range map[string]struct {
		want Want
		n    int
	}{
		"everything":             {Want{}, 3},
		"type":                   {Want{Type: "Normal"}, 2},
		"reason":                 {Want{Reason: "Bound"}, 1},
		"part of a reason":       {Want{Reason: "Boun"}, 0},
		"action":                 {Want{Action: "Drain"}, 1},
		"object":                 {Want{Regarding: pod}, 2},
		"object without uid":     {Want{Regarding: podNamed("")}, 2},
		"object of another uid":  {Want{Regarding: podNamed("other")}, 0},
		"object of another kind": {Want{Regarding: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-7"}}}, 0},
		// An object without a known kind is compared by its name.
		"unknown kind":           {Want{Regarding: &crd{corev1.Pod{ObjectMeta: pod.ObjectMeta}}}, 2},
		"unknown kind, no match": {Want{Regarding: &crd{corev1.Pod{ObjectMeta: node.ObjectMeta}}, Type: "Warning"}, 0},
		"name":                   {Want{Regarding: &corev1.ObjectReference{Name: "worker-2"}}, 1},
		"kind":                   {Want{Regarding: &corev1.ObjectReference{Kind: "Pod"}}, 2},
		"namespace":              {Want{Regarding: &corev1.ObjectReference{Namespace: "elsewhere"}}, 0},
		"version":                {Want{Regarding: &corev1.ObjectReference{APIVersion: "v2"}}, 0},
		"field path":             {Want{Regarding: &corev1.ObjectReference{FieldPath: "spec"}}, 0},
		"related":                {Want{Related: node}, 1},
		"note":                   {Want{Note: "evicted 14 pods"}, 1},
		"part of a note":         {Want{Note: "evicted"}, 0},
		"note contains":          {Want{NoteContains: "503"}, 1},
		"note matches":           {Want{NoteMatches: `\d+`}, 3},
		"note matches all":       {Want{NoteMatches: `^\d+$`}, 0},
		"annotation":             {Want{Annotations: map[string]string{"attempt": "1"}}, 1},
		"other annotation":       {Want{Annotations: map[string]string{"attempt": "2"}}, 0},
		"no annotation":          {Want{Annotations: map[string]string{"none": ""}}, 0},
		"controller":             {Want{ReportingController: "eventstest"}, 3},
		"other controller":       {Want{ReportingController: "other"}, 0},
		"several":                {Want{Type: "Normal", Regarding: pod, Related: node, NoteContains: "bound"}, 1},
		"several but one":        {Want{Type: "Warning", Regarding: pod, Related: node, NoteContains: "bound"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Len(t, r.Find(row.want), row.n)
			inner := &tb{}
			assert.Equal(t, row.n > 0, r.Expect(inner, row.want))
			assert.Equal(t, row.n == 0, inner.take() != "")
			assert.Equal(t, row.n == 0, r.ExpectNone(inner, row.want))
			assert.Equal(t, row.n > 0, inner.take() != "")
		})
	}
}

func TestInvalidWants(t *testing.T) {
	r := recordedAtNoon()
	for message, want := range map[string]Want{
		"eventstest: Want.Regarding: object is nil":                                  {Regarding: (*corev1.Pod)(nil)},
		"eventstest: Want.Related: object is nil":                                    {Related: (*corev1.Pod)(nil)},
		"eventstest: Want.NoteMatches: error parsing regexp: missing closing ): `(`": {NoteMatches: "("},
	} {
		inner := &tb{}
		for _, expect := range []func(testing.TB, ...Want) bool{r.Expect, r.ExpectOnly, r.ExpectInOrder, r.ExpectNone} {
			assert.False(t, expect(inner, want))
			require.Equal(t, message, inner.take())
		}
		assert.Empty(t, r.Find(want))
		_, err := r.Wait(t.Context(), want)
		assert.EqualError(t, err, message)
	}
}

func TestExpectations(t *testing.T) {
	r, empty := recordedAtNoon(), new(Recorder)
	anything, normal, warning := Want{}, Want{Type: "Normal"}, Want{Type: "Warning"}
	bound, drained, other := Want{Reason: "Bound"}, Want{Reason: "Maintenance"}, Want{Reason: "Other"}
	for name, row := range map[string]struct {
		expect func(testing.TB, ...Want) bool
		wants  []Want
		report string // a part of it if it begins with "..."; empty: none
	}{
		"no want":              {expect: r.Expect},
		"an event for each":    {expect: r.Expect, wants: []Want{normal, normal}},
		"wide want first":      {expect: r.Expect, wants: []Want{normal, bound}},
		"too few":              {r.Expect, []Want{normal, normal, normal}, "eventstest: too few events\n  want: type \"Normal\"" + all},
		"no event is close":    {r.Expect, []Want{other}, "eventstest: no such event\n  want: reason \"Other\"" + all},
		"no event at all":      {empty.Expect, []Want{anything}, "eventstest: no such event\n  want: any event\n  no event was recorded"},
		"only these":           {expect: r.ExpectOnly, wants: []Want{drained, bound, warning}},
		"only none":            {expect: empty.ExpectOnly},
		"others, too":          {r.ExpectOnly, []Want{bound}, "eventstest: unexpected events\n  want no others\n  recorded (2 of 3):" + second + third},
		"fewer than these":     {r.ExpectOnly, []Want{anything, anything, anything, anything}, "...too few events"},
		"in order":             {expect: r.ExpectInOrder, wants: []Want{bound, drained}},
		"in any order":         {expect: r.ExpectInOrder, wants: []Want{anything, anything, anything}},
		"out of order":         {r.ExpectInOrder, []Want{drained, bound}, "eventstest: events are not in order\n  want: reason \"Bound\"\n  after: reason \"Maintenance\"" + all},
		"one event for two":    {r.ExpectInOrder, []Want{bound, bound}, "...events are not in order"},
		"missing in order":     {r.ExpectInOrder, []Want{bound, other}, "...no such event"},
		"none of these":        {expect: r.ExpectNone, wants: []Want{other, {Action: "Other"}}},
		"none at all":          {expect: empty.ExpectNone},
		"some instead of none": {r.ExpectNone, nil, "...  want none\n  recorded (3 of 3):"},
		"one of several":       {r.ExpectNone, []Want{other, warning}, "eventstest: unexpected events\n  want none with type \"Warning\"\n  recorded (1 of 3):" + second},
		"closest event": {r.Expect, []Want{{
			Type: "Warning", Reason: "Unhealthy", Regarding: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "cart-8"},
			NoteContains: "HTTP 500", Annotations: map[string]string{"attempt": "2", "host": "a"},
		}}, `eventstest: no such event
  want: type "Warning", reason "Unhealthy", regarding Pod shop/cart-8, note contains "HTTP 500", annotation attempt "2", annotation host "a"
  closest is #2, which differs in
    regarding           want: Pod shop/cart-8
                         got: Pod shop/cart-7 (v1) uid pod-uid
    note                want: contains "HTTP 500"
                         got: "probe failed: HTTP 503"
    annotation attempt  want: "2"
                         got: "1"
    annotation host     want: "a"
                         got: none` + all},
	} {
		t.Run(name, func(t *testing.T) {
			inner := &tb{}
			assert.Equal(t, row.report == "", row.expect(inner, row.wants...))
			if part, ok := strings.CutPrefix(row.report, "..."); ok {
				assert.Contains(t, inner.take(), part)
			} else {
				require.Equal(t, row.report, inner.take())
			}
		})
	}
}

func TestLongListsAreTruncated(t *testing.T) {
	inner := &tb{}
	var r Recorder
	for i := range 25 {
		r.Eventf(pod, nil, "Normal", "Bound", "Schedule", "%d", i)
	}
	r.ExpectNone(inner)
	message := inner.take()
	assert.Contains(t, message, "#20 ")
	assert.NotContains(t, message, "#21 ")
	assert.True(t, strings.HasSuffix(message, "    and 5 more"), message)
}

func TestAssignFindsTheLargestMatching(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		events := make([]Event, rnd.IntN(6))
		for i := range events {
			events[i].Note = fmt.Sprint(i)
		}
		matchers := make([]matcher, rnd.IntN(6))
		fits := make([][]bool, len(matchers))
		for m := range matchers {
			fits[m] = make([]bool, len(events))
			for i := range events {
				fits[m][i] = rnd.IntN(3) == 0
			}
			matchers[m] = matcher{{met: func(e Event) bool { var i int; _, _ = fmt.Sscan(e.Note, &i); return fits[m][i] }}}
		}
		missing, extra := assign(matchers, events)
		assert.Equal(t, len(matchers)-len(missing), len(events)-len(extra))
		assert.Equal(t, largest(fits, 0, 0), len(matchers)-len(missing), "seed %d", seed)
	}
}

// largest returns the size of the largest matching. It tries all of them.
func largest(fits [][]bool, m int, taken uint) int {
	if m == len(fits) {
		return 0
	}
	best := largest(fits, m+1, taken)
	for i, fit := range fits[m] {
		if fit && taken&(1<<i) == 0 {
			best = max(best, 1+largest(fits, m+1, taken|1<<i))
		}
	}
	return best
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recordedAtNoon()
		event, err := r.Wait(t.Context(), Want{Type: "Normal"})
		require.NoError(t, err)
		assert.Equal(t, "Bound", event.Reason, "the first one, which is already there")

		begin := time.Now()
		go func() {
			for i := range 3 {
				time.Sleep(time.Minute)
				r.Eventf(pod, nil, "Normal", "Pulled", "Pull", "layer %d", i)
			}
		}()
		var waiters [3]Event
		for i := range waiters {
			go func() { waiters[i], _ = r.Wait(t.Context(), Want{NoteContains: "layer 1"}) }()
		}
		event, err = r.Wait(t.Context(), Want{NoteContains: "layer 1"})
		require.NoError(t, err)
		assert.Equal(t, "layer 1", event.Note)
		assert.Equal(t, 2*time.Minute, time.Since(begin), "as soon as it is recorded")
		synctest.Wait()
		for i := range waiters {
			assert.Equal(t, event, waiters[i])
		}
		time.Sleep(time.Minute)
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("too late"))
		defer cancel()
		r := recordedAtNoon()
		_, err := r.Wait(ctx, Want{Type: "Normal", Reason: "Pulled"})
		require.ErrorIs(t, err, context.Cause(ctx))
		assert.Contains(t, err.Error(), "too late: eventstest: no such event\n  want: type \"Normal\", reason \"Pulled\"\n  closest is #3")
		r.Reset()
		_, err = r.Wait(ctx, Want{})
		assert.ErrorContains(t, err, "no event was recorded")
	})
}

func TestWaitIsNotWokenBeforeTheEventIsThere(t *testing.T) {
	var r Recorder
	done := make(chan error)
	go func() { _, err := r.Wait(t.Context(), Want{Reason: "Last"}); done <- err }()
	for range 1000 {
		r.Eventf(pod, nil, "Normal", "Bound", "Schedule", "")
	}
	r.Eventf(pod, nil, "Normal", "Last", "Schedule", "")
	require.NoError(t, <-done)
}
