package chaos

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
)

func startWithoutServer(t *testing.T, flush time.Duration) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte("clusters: [{name: c, cluster: {server: http://unused}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"), 0o600))
	p, err := startProcess(emitterConfig{
		Seed: 1, Kubeconfig: file, Host: "http://127.0.0.1:1", Namespace: "ns",
		Controller: "example.com/chaos", Instance: "i", Shutdown: shortShutdown, Flush: flush,
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
	p, err := startProcess(emitterConfig{Kubeconfig: "no-such-file"})
	require.NoError(t, err)
	<-p.done
	require.Error(t, p.stop())
	require.Len(t, p.account.failures, 1)
	assert.Contains(t, p.account.failures[0], "no-such-file")
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
		{Sent: &addition{Key: 1, Event: "e", Count: 2}},
		{Acked: &addition{Key: 1, Event: "e", Count: 2}},
		{Dropped: &loss{Key: 3, Count: 7, Reason: events.DropShutdown}},
		{Stats: statsOf(events.Stats{
			Occurrences: 3, Adopted: 1, Restored: 2,
			Dropped: map[events.DropReason]uint64{events.DropShutdown: 7},
			Writes:  map[events.WriteKey]uint64{{Kind: "create", Outcome: "written"}: 1, {Kind: "look", Outcome: "written"}: 2},
		})},
		{Metrics: "a 1\n"},
		{Failed: "flush"},
		{Ended: true},
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

func TestScrapeReportsMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broadcaster := events.NewBroadcaster(nil)
		defer broadcaster.Shutdown()
		ctx, cancel := context.WithTimeout(t.Context(), 5*scrapeInterval/2)
		defer cancel()
		var pipe bytes.Buffer
		scrape(ctx, broadcaster, emitterConfig{Emitter: 2, Process: 3}, &reporter{begin: time.Now(), out: &pipe})
		var at []time.Duration
		require.NoError(t, readReports(&pipe, func(line report) {
			at = append(at, line.At)
			assert.Contains(t, line.Metrics, "\n"+`eventseries_occurrences_total{instance="emitter-2-process-3",job="chaos",namespace="chaos"} 0.0 9.46684`)
		}))
		assert.Equal(t, []time.Duration{0, scrapeInterval, 2 * scrapeInterval}, at)
	})
}

func TestRecordMergesProcesses(t *testing.T) {
	reports := func(texts ...string) *process {
		p := &process{}
		for _, text := range texts {
			p.reports = append(p.reports, report{Metrics: text}, report{Done: true})
		}
		return p
	}
	supervisors := []*supervisor{
		{processes: []*process{reports("a 1 1\n", "a 2 2\n"), reports("a 0 3\n")}},
		{processes: []*process{reports("b 5 1\n")}},
	}
	path := filepath.Join(t.TempDir(), "run")
	require.NoError(t, record(path, supervisors))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	zip, err := gzip.NewReader(file)
	require.NoError(t, err)
	got, err := io.ReadAll(zip)
	require.NoError(t, err)
	assert.Equal(t, "a 1 1\na 2 2\na 0 3\nb 5 1\n# EOF\n", string(got))

	assert.Error(t, record(path, nil), "there are no metrics")
}

func TestRegression(t *testing.T) {
	at := func(count int32, second int, state series.State) *eventsv1.Event {
		event := eventOf(0, 0, count)
		if count > 1 {
			event.Annotations = map[string]string{series.AnnotationState: state.String()}
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
		"reopened":          {at(5, 1, series.Finished), at(6, 2, series.Ongoing), "a finished series changed"},
		"count of finished": {at(5, 1, series.Finished), at(6, 2, series.Finished), "a finished series changed"},
	} {
		assert.Equal(t, tt.want, regression(tt.before, tt.now), name)
	}
}

func TestScheduleDependsOnlyOnSeed(t *testing.T) {
	s := newSchedule(7, 3, 10*time.Minute)
	assert.Equal(t, s, newSchedule(7, 3, 10*time.Minute))
	assert.Equal(t, s.String(), newSchedule(7, 3, 10*time.Minute).String())
	assert.NotEqual(t, s, newSchedule(8, 3, 10*time.Minute))
	assert.NotEqual(t, s.emitters[0], s.emitters[1])

	shorter := newSchedule(7, 3, time.Minute)
	require.NotEmpty(t, shorter.server)
	assert.Equal(t, shorter.server, s.server[:len(shorter.server)])
	assert.Equal(t, shorter.network, s.network[:len(shorter.network)])
}

func TestScheduleStepsDoNotOverlap(t *testing.T) {
	for seed := range uint64(50) {
		s := newSchedule(seed, 4, 2*time.Minute)
		require.Len(t, s.emitters, 4)
		for _, steps := range slices.Concat([][]step{s.server, s.network}, s.emitters) {
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

func TestPushBacksDoNotChangeOtherSteps(t *testing.T) {
	const duration = 3 * time.Minute
	without := newSchedule(7, 3, duration)
	with := without.withPushBacks(7, duration)
	assert.Greater(t, len(with.pushBack), 2)
	assert.Equal(t, len(with.pushBack), with.count()[pushBack])
	assert.Contains(t, with.String(), string(pushBack))
	assert.Equal(t, with, without.withPushBacks(7, duration))
	with.pushBack = nil
	assert.Equal(t, without, with)
}

func TestShortScheduleContainsAllFaults(t *testing.T) {
	counts := newSchedule(defaultSeed, emitters, defaultDuration).count()
	for _, k := range slices.Concat(serverKinds, networkKinds, emitterKinds) {
		assert.NotZero(t, counts[k], "%s: %v", k, counts)
	}
}
