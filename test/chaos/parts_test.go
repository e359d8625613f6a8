package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
)

func startWithoutServer(t *testing.T, flush time.Duration) *process {
	t.Helper()
	faults := faults{balancer: filepath.Join(t.TempDir(), "balancer")}
	require.NoError(t, faults.setBalancer(""))
	p, err := startProcess(emitterConfig{
		Seed: 1, Servers: []string{"127.0.0.1:1"}, Balancer: faults.balancer,
		Controller: "example.com/chaos", Instance: "i", Shutdown: shortShutdown, Flush: flush, Clock: time.Hour,
	})
	require.NoError(t, err)
	t.Cleanup(p.abandon)
	for batches := 0; batches < 3; batches, _ = p.progress() {
		require.True(t, until(t.Context(), time.Now().Add(tick)))
		select {
		case <-p.done:
			require.Fail(t, "the emitter has exited", "%v: %s", p.err, &p.log)
		default:
		}
	}
	return p
}

func TestEmitterDropsEverythingWithoutServer(t *testing.T) {
	p := startWithoutServer(t, 0)
	require.NoError(t, p.stop())
	assert.Empty(t, p.account.check())
	assert.NotRegexp(t, forbiddenLog, p.log.String())
	emitted, dropped := p.account.totals()
	assert.Positive(t, emitted)
	assert.Equal(t, emitted, dropped)
	assert.Error(t, p.stop(), "it has exited")
	assert.Error(t, p.kill(), "it has exited")
}

func TestEmitterIsKilled(t *testing.T) {
	p := startWithoutServer(t, 0)
	require.NoError(t, p.kill())
	assert.False(t, p.account.ended)
	emitted, _ := p.account.totals()
	assert.Positive(t, emitted)
	assert.Zero(t, p.account.flushed)
	assert.Empty(t, p.account.check())
}

func TestEmitterReportsFailedFlush(t *testing.T) {
	p := startWithoutServer(t, time.Second)
	require.NoError(t, p.stop())
	require.NotEmpty(t, p.account.check())
	assert.Contains(t, p.account.check()[0], "were not flushed")
}

func TestEmitterEndsWithItsParent(t *testing.T) {
	p := startWithoutServer(t, 0)
	require.NoError(t, p.stdin.Close())
	<-p.done
	assert.ErrorContains(t, p.err, "exit status 3")
}

func TestEmitterReportsFailedStart(t *testing.T) {
	p, err := startProcess(emitterConfig{Servers: []string{"127.0.0.1:1"}, CAData: []byte("none")})
	require.NoError(t, err)
	<-p.done
	require.Error(t, p.stop())
	require.Len(t, p.account.failures, 1)
	assert.Contains(t, p.account.failures[0], "root certificates")
}

func TestPatternDependsOnSeedEmitterAndProcess(t *testing.T) {
	take := func(p *pattern) (all [][]burst) {
		for range 500 {
			all = append(all, p.next())
		}
		return all
	}
	same := take(newPattern(1, 2, 3, 20))
	assert.Equal(t, same, take(newPattern(1, 2, 3, 20)))
	for _, other := range []*pattern{newPattern(2, 2, 3, 20), newPattern(1, 1, 3, 20), newPattern(1, 2, 4, 20)} {
		assert.NotEqual(t, same, take(other))
	}
}

// Series must go through all states, without too much load for the machine.
func TestPatternLoopsAndPauses(t *testing.T) {
	p := newPattern(1, 0, 0, keysPerEmitter)
	const minutes = 10
	last := make([]int, keysPerEmitter)
	occurrences, breaks, loops := 0, 0, 0
	for i := range batches(minutes * time.Minute) {
		for _, b := range p.next() {
			occurrences += b.Count
			if i-last[b.Key] > batches(finishAfter) {
				breaks++
			} else {
				loops++
			}
			last[b.Key] = i
		}
	}
	perSecond := occurrences / (minutes * 60)
	assert.Greater(t, perSecond, 100)
	assert.Less(t, perSecond, 1000)
	assert.Greater(t, breaks, minutes*keysPerEmitter, "one per minute and key")
	assert.Greater(t, loops, 10*breaks)
}

func TestReportsRoundTrip(t *testing.T) {
	want := []report{
		{Seq: 1, Batch: []burst{{Key: 0, Count: 2}, {Key: 3, Count: 1}}},
		{Seq: 1, Done: true},
		{Seq: 1, Flushed: true},
		{Added: &addition{Key: 1, Event: "e", Sent: 2, Acked: 1, Twice: 1}},
		{Answered: &answer{After: time.Second, Failed: true}},
		{Dropped: &loss{Key: 3, Count: 7, Reason: "Shutdown"}},
		{Stats: statsOf(events.Stats{
			Occurrences: 3, Adopted: 1, Restored: 2,
			Dropped:  map[events.DropReason]uint64{"Shutdown": 7},
			Requests: []events.RequestStats{{Kind: "create", Outcome: "written", Count: 1}, {Kind: "look", Outcome: "written", Count: 2}},
		})},
		{Failed: "flush"},
		{Heap: 1, Ended: true},
	}
	var pipe bytes.Buffer
	r := &reporter{begin: time.Now(), out: &pipe}
	for _, line := range want {
		r.write(line)
	}
	pipe.WriteString(`{"seq":2,"batch":[{"k":1`) // of a killed process
	var got []report
	last := time.Duration(0)
	require.NoError(t, readReports(&pipe, func(line report) {
		assert.Greater(t, line.At, last)
		last, line.At = line.At, 0
		got = append(got, line)
	}))
	assert.Equal(t, want, got)
	assert.Equal(t, map[string]uint64{
		"occurrences": 3, "series adopted by name": 1, "series restored by list": 2, "dropped, Shutdown": 7,
		"requests": 3, "requests, written create": 1, "requests, written look": 2,
	}, got[6].Stats)

	err := readReports(strings.NewReader("WARNING: DATA RACE\n"), func(report) {})
	assert.ErrorContains(t, err, "DATA RACE")
}

func TestRegression(t *testing.T) {
	at := func(count int32, second int, state series.State) *eventsv1.Event {
		event := eventOf(0, 0, count)
		if count > 1 {
			event.Labels = map[string]string{series.LabelState: state.String()}
			event.Series.LastObservedTime = metav1.NewMicroTime(time.Unix(int64(second), 0))
		}
		return &event
	}
	single := at(1, 0, series.Singleton)
	for name, tt := range map[string]struct {
		before, now *eventsv1.Event
		want        string
	}{
		"start of a series": {single, at(2, 1, series.Ongoing), ""},
		"heartbeat":         {at(2, 1, series.Ongoing), at(5, 2, series.Ongoing), ""},
		"no change":         {at(2, 1, series.Ongoing), at(2, 1, series.Ongoing), ""},
		"finished":          {at(2, 1, series.Ongoing), at(2, 1, series.Finished), ""},
		"finished twice":    {at(2, 1, series.Finished), at(2, 1, series.Finished), ""},
		"smaller count":     {at(5, 1, series.Ongoing), at(4, 2, series.Ongoing), "the count decreased"},
		"no series":         {at(2, 1, series.Ongoing), single, "the count decreased"},
		"earlier":           {at(5, 2, series.Ongoing), at(6, 1, series.Ongoing), "the time decreased"},
		"reopened":          {at(5, 1, series.Finished), at(5, 1, series.Ongoing), "a finished series changed without an occurrence"},
		"continued":         {at(5, 1, series.Finished), at(6, 2, series.Ongoing), ""},
		"and ended again":   {at(5, 1, series.Finished), at(6, 2, series.Finished), ""},
	} {
		assert.Equal(t, tt.want, regression(tt.before, tt.now), name)
	}
	before, now := at(5, 1, series.Finished), at(5, 1, series.Ongoing)
	now.Regarding = *subjectReference(2, 0)
	assert.Empty(t, regression(before, now), "two processes write")
}

func TestScheduleDependsOnlyOnSeed(t *testing.T) {
	s := newSchedule(7, 3, 10*time.Minute)
	assert.Equal(t, s, newSchedule(7, 3, 10*time.Minute))
	assert.Equal(t, s.String(), newSchedule(7, 3, 10*time.Minute).String())
	assert.NotEqual(t, s, newSchedule(8, 3, 10*time.Minute))
	assert.NotEqual(t, s.emitters[0], s.emitters[1])

	shorter := newSchedule(7, 3, time.Minute)
	for i, steps := range shorter.faults {
		require.NotEmpty(t, steps)
		assert.Equal(t, steps, s.faults[i][:len(steps)])
	}
}

func TestScheduleStepsDoNotOverlap(t *testing.T) {
	for seed := range uint64(50) {
		s := newSchedule(seed, 4, 2*time.Minute)
		require.Len(t, s.emitters, 4)
		for _, steps := range slices.Concat(s.faults, s.emitters) {
			require.NotEmpty(t, steps)
			ended := time.Duration(0)
			for _, step := range steps {
				require.GreaterOrEqual(t, step.at, ended, "%v", step)
				require.GreaterOrEqual(t, step.lasts, time.Duration(0), "%v", step)
				ended = step.at + step.lasts
			}
			require.LessOrEqual(t, ended, 2*time.Minute)
		}
	}
}

func TestShortScheduleContainsAllFaults(t *testing.T) {
	text := newSchedule(defaultSeed, emitters, defaultDuration).String()
	for _, track := range append(tracks, emitterTrack(emitters-1)) {
		for _, k := range track.kinds {
			assert.Regexp(t, string(k)+" +for", text)
		}
	}
}

func sends(key int, count int64) report { return report{Added: &addition{Key: key, Sent: count}} }

func acks(key int, count int64) report { return report{Added: &addition{Key: key, Acked: count}} }

func accountOf(reports ...report) *account {
	a := newAccount(3, finishAfter)
	for _, r := range reports {
		a.add(r)
	}
	return a
}

func assertBounds(t *testing.T, a *account, key int, low, high int64, why string) {
	t.Helper()
	b := a.bounds(key)
	assert.Equal(t, [2]int64{low, high}, [2]int64{b.low, b.high}, why)
}

func TestBoundsAfterShutdown(t *testing.T) {
	a := accountOf(
		report{Seq: 1, Batch: []burst{{0, 3}, {1, 1}, {2, 1}}},
		report{Seq: 1, Done: true},
		report{Seq: 2, Batch: []burst{{0, 4}}},
		report{Seq: 2, Done: true},
		sends(0, 3), acks(0, 3), sends(0, 1), acks(0, 1), sends(0, 1), acks(0, 1),
		sends(1, 1), sends(2, 1),
		report{Dropped: &loss{Key: 1, Count: 1, Reason: "Shutdown"}},
		report{Dropped: &loss{Key: 2, Count: 1, Reason: "Denied"}},
		report{Dropped: &loss{Key: 0, Count: 2, Reason: "Rejected"}},
		report{Stats: map[string]uint64{"occurrences": 9, "dropped, Shutdown": 1, "dropped, Denied": 1, "dropped, Rejected": 2}},
		report{Ended: true},
	)
	assertBounds(t, a, 0, 5, 5, "acknowledged")
	assertBounds(t, a, 1, 0, 1, "the server may have executed the canceled request")
	assertBounds(t, a, 2, 0, 1, "the server may have executed a request before it denied the next one")
	assert.Empty(t, a.check())

	a.stats["occurrences"]++
	a.stats["dropped, Shutdown"]++
	assert.Equal(t, []string{
		"emitted 9 occurrences, but Stats has 10",
		"OnDrop got -1 occurrences more than Stats has: map[dropped, Denied:1 dropped, Rejected:2 dropped, Shutdown:2 occurrences:10]",
	}, a.check())
}

func TestBoundsAfterKill(t *testing.T) {
	a := accountOf(
		report{Seq: 1, Batch: []burst{{0, 3}, {1, 1}}},
		report{Seq: 1, Done: true},
		sends(0, 1), acks(0, 1),
		sends(1, 1),
		report{Seq: 2, Batch: []burst{{0, 4}}},
		report{Seq: 2, Done: true},
		report{Seq: 1, Flushed: true},
		sends(0, 6),
		report{Seq: 3, Batch: []burst{{0, 5}}},
	)
	assertBounds(t, a, 0, 3, 7, "flushed, and sent")
	assertBounds(t, a, 1, 1, 1, "flushed, and sent")
	assert.Equal(t, "was killed after 0.0s: flushed 1 of 3 batches; emitted 13 occurrences, dropped 0, wrote 4 to 8, at most 0 twice", a.String())
	assert.Empty(t, a.check(), "there are no final stats")

	a.add(acks(0, 6))
	assertBounds(t, a, 0, 7, 7, "acknowledged, and sent")
	a.add(sends(0, 9))
	assertBounds(t, a, 0, 7, 12, "acknowledged, and emitted")
	assert.Empty(t, a.check())
	a.add(report{Seq: 3, Flushed: true})
	assertBounds(t, a, 0, 12, 12, "flushed")
	a.add(acks(1, 2))
	assert.Len(t, a.check(), 1, "the server acknowledged more than was emitted")
}

func TestAccountRejectsInvalidReports(t *testing.T) {
	assert.Len(t, accountOf(sends(-1, 1), sends(3, 1), acks(0, -1)).check(), 3)
	a := accountOf(report{Failed: "boom"}, report{Seq: 2, Batch: []burst{{0, 1}}})
	assert.Equal(t, []string{"boom", "batch 2 follows batch 0"}, a.check())
}

func TestBoundsOfEvents(t *testing.T) {
	second := func(n int) time.Duration { return time.Duration(n) * time.Second }
	window := int(finishAfter / time.Second)
	batch := func(seq, count, from, to int) []report {
		return []report{{At: second(from), Seq: seq, Batch: []burst{{0, count}}}, {At: second(to), Seq: seq, Done: true}}
	}
	first := batch(1, 3, 1, 2)
	for name, tt := range map[string]struct {
		reports []report
		want    int
	}{
		"none":                             {nil, 0},
		"killed during a batch":            {first[:1], 3},
		"one batch":                        {first, 1},
		"quiet for less than the window":   {slices.Concat(first, batch(2, 2, window-1, window)), 1},
		"quiet for the window":             {slices.Concat(first, batch(2, 2, window, window+1)), 2},
		"a batch that takes a long time":   {batch(1, 3, 1, 1+window), 3},
		"a long batch after a usual batch": {slices.Concat(first, batch(2, 2, 3, 3+window)), 3},
	} {
		assert.Equal(t, tt.want, accountOf(tt.reports...).bounds(0).maxEvents, name)
	}
}

func eventOf(emitter, key int, count int32) eventsv1.Event {
	event := eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Regarding: *subjectReference(emitter, key)}
	if count > 1 {
		event.Series = &eventsv1.EventSeries{Count: count}
	}
	return event
}

func TestCompareFindsDifferences(t *testing.T) {
	// For key 1 of emitter 1, the first process wrote 3 to 5 occurrences, the second
	// wrote 2. Each may have begun one series.
	first := newAccount(keysPerEmitter, finishAfter)
	first.keys[1] = keyAccount{emitted: 5, flushed: 3, sent: 5, begun: 1}
	second := newAccount(keysPerEmitter, finishAfter)
	second.keys[1] = keyAccount{emitted: 2, sent: 2, begun: 1}
	second.ended = true
	l := ledger{{newAccount(keysPerEmitter, finishAfter)}, {first, second}}

	for name, tt := range map[string]struct {
		found []eventsv1.Event
		wrong []string
	}{
		"minimum":         {[]eventsv1.Event{eventOf(1, 1, 5)}, nil},
		"maximum":         {[]eventsv1.Event{eventOf(1, 1, 6), eventOf(1, 1, 1)}, nil},
		"one lost":        {[]eventsv1.Event{eventOf(1, 1, 4)}, []string{"4 occurrences in 1 Events; expected 5 to 7", "process 0 (ended: false): {emitted:5 flushed:3", "count 4"}},
		"all lost":        {nil, []string{"0 occurrences in 0 Events; expected 5 to 7"}},
		"one twice":       {[]eventsv1.Event{eventOf(1, 1, 8)}, []string{"8 occurrences in 1 Events; expected 5 to 7"}},
		"in three Events": {[]eventsv1.Event{eventOf(1, 1, 3), eventOf(1, 1, 1), eventOf(1, 1, 1)}, []string{"in 3 Events; expected 5 to 7 occurrences in at most 2"}},
		"other key":       {[]eventsv1.Event{eventOf(1, 1, 5), eventOf(1, 2, 1)}, []string{"emitter 1, key 2: 1 occurrences"}},
		"other emitter":   {[]eventsv1.Event{eventOf(1, 1, 5), eventOf(0, 1, 1)}, []string{"emitter 0, key 1: 1 occurrences"}},
		"unknown emitter": {[]eventsv1.Event{eventOf(1, 1, 5), eventOf(7, 1, 1)}, []string{"emitter -1"}},
	} {
		wrong, twice := l.compare(tt.found)
		require.Len(t, wrong, min(len(tt.wrong), 1), name)
		for _, text := range tt.wrong {
			assert.Contains(t, wrong[0].String(), text, name)
		}
		assert.Zero(t, twice, name)
	}

	second.keys[1].sent, second.keys[1].twice = 4, 2
	wrong, twice := l.compare([]eventsv1.Event{eventOf(1, 1, 9)})
	assert.Empty(t, wrong)
	assert.Equal(t, int64(2), twice)
	wrong, _ = l.compare([]eventsv1.Event{eventOf(1, 1, 10)})
	assert.Len(t, wrong, 1)

	three := []eventsv1.Event{eventOf(1, 1, 3), eventOf(1, 1, 1), eventOf(1, 1, 1)}
	second.overlaps = true
	wrong, _ = l.compare(three)
	assert.Empty(t, wrong, "overlapping processes end the series of each other")
}

func TestParseSubject(t *testing.T) {
	emitter, key, ok := parseSubject(subjectReference(3, 42).Name)
	assert.Equal(t, []any{3, 42, true}, []any{emitter, key, ok})
	for _, name := range []string{"", "kube-apiserver", "emitter-x-key-1", "emitter--1-key-1"} {
		_, _, ok = parseSubject(name)
		assert.False(t, ok, name)
	}
}

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
	const own, others = 0, 1 // eventTime
	event := func(count int32, first int64) *eventsv1.Event {
		e := eventOf(0, 1, count)
		e.EventTime = metav1.NewMicroTime(time.Unix(first, 0))
		if e.Series != nil {
			e.Series.LastObservedTime = metav1.NewMicroTime(time.Unix(int64(count), 0))
		}
		return &e
	}
	const create, list, look, patch = "create", "list", "look", "patch"
	send := func(s *accountingSink, verb string, e *eventsv1.Event) (err error) {
		data := []byte("{}")
		switch verb {
		case create:
			_, err = s.Create(t.Context(), e)
			return err
		case list:
			_, err = s.List(t.Context(), "", metav1.ListOptions{})
			return err
		case patch:
			data, err = json.Marshal(map[string]any{"series": e.Series})
			require.NoError(t, err)
		}
		_, err = s.Patch(t.Context(), e, data)
		return err
	}
	lost := errors.New("lost")
	changed := apierrors.NewConflict(schema.GroupResource{}, "e", nil)
	type request struct {
		verb    string
		count   int32 // of the request, and of the answer
		first   int64
		version int // of the answer
		err     error
		want    addition // the sums so far
	}
	for name, requests := range map[string][]request{
		"own": {
			{create, 2, own, 0, lost, addition{Sent: 2}},
			{look, 2, own, 1, nil, addition{Sent: 2, Acked: 2}},
			{patch, 10, own, 0, lost, addition{Sent: 10, Acked: 2}},
			{patch, 11, own, 2, nil, addition{Sent: 11, Acked: 11}},
			{look, 9, own, 1, nil, addition{Sent: 11, Acked: 11}}, // out of date
		},
		"found by name": {
			{look, 7, others, 1, nil, addition{}},
			{patch, 10, others, 2, nil, addition{Sent: 3, Acked: 3}},
			{look, 10, others, 2, nil, addition{Sent: 3, Acked: 3}},
			{patch, 12, others, 3, nil, addition{Sent: 5, Acked: 5}},
		},
		"found by list": {
			{list, 7, others, 1, nil, addition{}},
			{patch, 10, others, 2, nil, addition{Sent: 3, Acked: 3}},
			{list, 7, others, 1, nil, addition{Sent: 3, Acked: 3}}, // out of date
			{patch, 12, others, 3, nil, addition{Sent: 5, Acked: 5}},
		},
		"others write": {
			{create, 2, own, 1, nil, addition{Sent: 2, Acked: 2}},
			{patch, 4, own, 0, changed, addition{Sent: 4, Acked: 2}},
			{look, 5, own, 2, nil, addition{Sent: 4, Acked: 2}}, // 3 of others
			{patch, 7, own, 3, nil, addition{Sent: 4, Acked: 4}},
		},
		"others write after a patch without an answer": {
			{create, 2, own, 1, nil, addition{Sent: 2, Acked: 2}},
			{patch, 3, own, 0, lost, addition{Sent: 3, Acked: 2}},
			{patch, 4, own, 0, lost, addition{Sent: 4, Acked: 2}},
			{patch, 9, own, 0, lost, addition{Sent: 9, Acked: 2}},
			{look, 6, own, 3, nil, addition{Sent: 9, Acked: 2, Twice: 2}}, // 9 is impossible
			{patch, 13, own, 4, nil, addition{Sent: 11, Acked: 9, Twice: 2}},
		},
		"others write after creates without an answer": {
			{create, 2, own, 0, lost, addition{Sent: 2}},
			{create, 5, own, 0, lost, addition{Sent: 5}},
			{look, 6, own, 2, nil, addition{Sent: 5, Acked: 2, Twice: 3}},
		},
		"a create without an answer, and again": {
			{create, 2, own, 0, lost, addition{Sent: 2}},
			{create, 2, own, 0, changed, addition{Sent: 2}},
			{look, 2, own, 1, nil, addition{Sent: 2, Acked: 2}},
			{patch, 4, own, 2, nil, addition{Sent: 4, Acked: 4}},
		},
		"others have created it": {
			{create, 2, own, 0, lost, addition{Sent: 2}},
			{look, 6, others, 1, nil, addition{Sent: 2}},
		},
	} {
		var pipe bytes.Buffer
		server := &fixedSink{}
		s := newAccountingSink(server, &reporter{begin: time.Now(), out: &pipe})
		a := newAccount(3, finishAfter)
		for i, r := range requests {
			server.answer, server.err = event(r.count, r.first), r.err
			server.answer.ResourceVersion = strconv.Itoa(r.version)
			require.ErrorIs(t, send(s, r.verb, event(r.count, r.first)), r.err)
			answered := 0
			require.NoError(t, readReports(&pipe, func(r report) {
				a.add(r)
				if r.Answered != nil {
					answered++
					assert.Equal(t, errors.Is(server.err, lost), r.Answered.Failed)
				}
			}))
			assert.Equal(t, 1, answered)
			k := a.keys[1]
			assert.Equal(t, r.want, addition{Sent: k.sent, Acked: k.acked, Twice: k.twice}, "%s, request %d", name, i)
			assert.Empty(t, a.failures)
		}
	}
}

// handler is a server without a network.
type handler func(*http.Request) *http.Response

func (h handler) RoundTrip(r *http.Request) (*http.Response, error) { return h(r), nil }

func TestBalancer(t *testing.T) {
	f := faults{balancer: filepath.Join(t.TempDir(), "balancer")}
	served, hosts := 0, make(map[string]int)
	b := &balancer{servers: []string{"a:1", "b:2"}, file: f.balancer, next: handler(func(r *http.Request) *http.Response {
		served++
		hosts[r.URL.Host]++
		return &http.Response{StatusCode: http.StatusCreated, Body: http.NoBody}
	})}
	const requests = 200
	answers := func(k kind, method string) map[int]int {
		require.NoError(t, f.setBalancer(k))
		served = 0
		codes := make(map[int]int)
		for range requests {
			response, err := b.RoundTrip(httptest.NewRequestWithContext(t.Context(), method, "/", strings.NewReader("x")))
			if err != nil {
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				codes[0]++
				continue
			}
			codes[response.StatusCode]++
			require.NoError(t, response.Body.Close())
		}
		return codes
	}
	assert.Equal(t, map[int]int{http.StatusCreated: requests}, answers("", http.MethodPost))
	assert.Len(t, hosts, 2)

	got := answers(answerPages, http.MethodPatch)
	assert.Len(t, got, len(pageCodes)+1)
	assert.Equal(t, served, got[http.StatusCreated])

	assert.Equal(t, map[int]int{http.StatusCreated: requests}, answers(loseCreates, http.MethodPatch))
	got = answers(loseCreates, http.MethodPost)
	assert.Equal(t, requests, served)
	assert.Positive(t, got[0])
	assert.Positive(t, got[http.StatusCreated])
}

func TestClocksDiffer(t *testing.T) {
	now := time.Now()
	assert.InDelta(t, -time.Hour, shiftedClock{by: -time.Hour}.Now().Round(0).Sub(now.Round(0)), float64(time.Minute))
	right := 0
	for process := range 300 {
		by := clockOf(1, 2, process)
		assert.Equal(t, by, clockOf(1, 2, process))
		assert.Less(t, by.Abs(), 6*time.Minute)
		if by == 0 {
			right++
		}
	}
	assert.InDelta(t, 200, right, 50)
}
