package record

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	clientgo "k8s.io/client-go/tools/record"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

// only returns the Event on a server that has exactly one.
func (s server) only(t *testing.T) *corev1.Event {
	t.Helper()
	list, err := s.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	return &list.Items[0]
}

// writes returns how many requests could change something: an empty patch reads.
func (s server) writes() int {
	return len(slices.DeleteFunc(s.Actions(), func(action clienttesting.Action) bool {
		patch, ok := action.(clienttesting.PatchAction)
		return action.GetVerb() == "list" || ok && string(patch.GetPatch()) == "{}"
	}))
}

// unlimited returns a broadcaster of client-go that filters no events, so its counts are
// right.
func unlimited() EventBroadcaster {
	return clientgo.NewBroadcasterWithCorrelatorOptions(CorrelatorOptions{QPS: 1000, BurstSize: 1 << 20})
}

const (
	hours    = 4                // each loop runs for so long, and then stops
	interval = 30 * time.Second // a user looks this often
)

// process is one process of the controller.
type process struct {
	host  string
	scope events.Scope
}

// Each loop of internal/workload with a period of up to 1,000 seconds is one Event, whose
// fields are those that client-go would write. A restart and a new leader continue it.
func TestLoopIsOneEvent(t *testing.T) {
	for name, processes := range map[string][]process{
		"one process": {{"node-1", events.SameInstance}},
		"restart":     {{"node-1", events.SameInstance}, {"node-1", events.SameInstance}},
		"hand-over":   {{"node-1", events.SameController}, {"node-2", events.SameController}},
	} {
		for _, loop := range workload.Some(workload.Loops()...) {
			if loop.Longest <= 1000*time.Second {
				t.Run(name+"/"+loop.Name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { testLoop(t, loop, processes) })
				})
			}
		}
	}
}

// testLoop runs a loop. The processes share the time.
func testLoop(t *testing.T, loop workload.Loop, processes []process) {
	begin, ours, theirs := time.Now(), newServer(), newServer()
	var broadcaster EventBroadcaster
	var recorder EventRecorder
	start := func(p process) {
		broadcaster = NewBroadcaster(WithOptions(func(o *events.Options) { o.Scope = p.scope }))
		broadcaster.StartRecordingToSink(ours.sink())
		recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester", Host: p.host})
	}
	start(processes[0])
	defer func() { broadcaster.Shutdown() }()
	// client-go sends a request for each occurrence of the hot loop, and begins
	// another Event after a restart.
	compared := len(processes) == 1 && loop.Longest > time.Second
	other := unlimited()
	other.StartRecordingToSink(theirs.sink())
	defer other.Shutdown()
	otherRecorder := other.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester", Host: "node-1"})

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	count, last := 0, time.Duration(0)
	occur := func(at time.Duration) {
		recorder.Event(pod, "Warning", "Failed", "it fails")
		if compared {
			otherRecorder.Event(pod, "Warning", "Failed", "it fails")
		}
		count, last = count+1, at
	}
	loop.Play(hours*time.Hour, 1, interval, time.Sleep, occur, func(now time.Duration) {
		if now == hours*time.Hour/2 && len(processes) > 1 {
			broadcaster.Shutdown()
			start(processes[1])
		}
		synctest.Wait()
		if event := ours.only(t); count > 1 && (loop.Name != "bursts" || count > 10) { // nobody can know that bursts recur
			require.Equal(t, series.Ongoing.String(), event.Labels[series.LabelState], "after %v", now)
			require.Equal(t, series.Ongoing, series.StateAt(compat.FromCore(event), time.Now()), "after %v", now)
		}
	})
	// A heartbeat each 5 minutes, some earlier, so that readers see no older time. A process that starts
	// again first tries to create the Event.
	assert.LessOrEqual(t, ours.writes(), 13*hours+12*len(processes)+len(processes)-1)
	time.Sleep(last + max(6*time.Minute+15*time.Second, loop.Longest*5/2) - hours*time.Hour)
	synctest.Wait()

	event := ours.only(t)
	assert.Equal(t, series.Finished.String(), event.Labels[series.LabelState])
	assert.EqualValues(t, count, event.Count)
	assert.Equal(t, corev1.EventSource{Component: "tester", Host: processes[0].host}, event.Source, "that of the first process")
	assert.Equal(t, begin.Unix(), event.FirstTimestamp.Unix())
	assert.WithinDuration(t, begin.Add(last), event.LastTimestamp.Time, time.Second)
	if compared {
		want := theirs.only(t)
		assert.Equal(t, want.Count, event.Count)
		assert.Equal(t, want.FirstTimestamp.Unix(), event.FirstTimestamp.Unix())
		assert.Equal(t, want.LastTimestamp.Unix(), event.LastTimestamp.Unix())
		assert.Equal(t, want.Source, event.Source)
	}
}

// A program that reports progress in messages has one Event, whose watchers read them.
func TestProgress(t *testing.T) {
	for name, tt := range map[string]struct {
		options CorrelatorOptions
		prefix  string
	}{
		"MessageFunc": {CorrelatorOptions{MaxEvents: 1, MessageFunc: func(e *corev1.Event) string { return e.Message }}, ""},
		"default":     {CorrelatorOptions{MaxEvents: 1}, series.CombinedPrefix},
		"MaxEvents 3": {CorrelatorOptions{MaxEvents: 3, MessageFunc: func(e *corev1.Event) string { return e.Reason + ": " + e.Message }}, "Progress: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				stream, err := s.CoreV1().Events("").Watch(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				broadcaster := NewBroadcaster(WithCorrelatorOptions(tt.options))
				broadcaster.StartRecordingToSink(s.sink())
				defer broadcaster.Shutdown()
				recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester", Host: "node-1"})
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
				for i := range 30 {
					recorder.Eventf(pod, "Normal", "Progress", "%d of 30", i+1)
					time.Sleep(time.Second / 4)
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				list, err := s.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				got := make(map[string]int32)
				for _, event := range list.Items {
					got[event.Message] += event.Count
				}
				want := map[string]int32{tt.prefix + "30 of 30": 30}
				for i := 1; i < tt.options.MaxEvents; i++ {
					want[fmt.Sprintf("%d of 30", i)], want[tt.prefix+"30 of 30"] = 1, want[tt.prefix+"30 of 30"]-1
				}
				assert.Equal(t, want, got)
				stream.Stop()
				for change := range stream.ResultChan() {
					if event := change.Object.(*corev1.Event); event.Series != nil {
						assert.Regexp(t, `^`+regexp.QuoteMeta(tt.prefix)+`\d+ of 30$`, event.Message)
					}
				}
			})
		})
	}
}
