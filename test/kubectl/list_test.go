package kubectl

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// expected is what the program should show for an Event.
type expected struct {
	name, state string
	count       int32
	rate        float64
	first, last time.Time
}

// population returns Events of four recorders, and what they mean. It knows only what the
// recorders write, and not how the library reads it.
func population(namespace string, n int, now time.Time) (events []*eventsv1.Event, legacy []*corev1.Event, all []expected) {
	for i := range n {
		name := fmt.Sprintf("e%05d", i)
		pod := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: fmt.Sprintf("pod-%d", i%100)}
		first := now.Add(-time.Duration(60+i%7200) * time.Second)
		// Half of the series occurred a moment ago, and half of them are older than any
		// heartbeat.
		last := now.Add(-time.Duration(i%50) * time.Second)
		stale := i%8 >= 4
		if stale {
			first, last = first.Add(-3*time.Hour), now.Add(-2*time.Hour-time.Duration(i%600)*time.Second)
			if first.After(last) {
				first = last.Add(-time.Minute)
			}
		}
		count := int32(2 + i%997)
		e := newEvent(namespace, name, pod)
		e.EventTime = metav1.NewMicroTime(first)
		want := expected{name: name, count: count, first: first, last: last}
		series := func() {
			e.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(last)}
		}
		switch i % 4 {
		case 0: // eventseries
			switch state := i / 8 % 4; state {
			case 0:
				want.state, want.count, want.last = "Singleton", 1, first
			default:
				series()
				want.state = []string{"", "Ongoing", "Finished", "Unknown"}[state]
				e.Labels = map[string]string{"eventseries.dev/state": want.state}
				e.Annotations = map[string]string{"eventseries.dev/heartbeat": "10m"}
				if stale && want.state == "Ongoing" {
					want.state = "Unknown"
				}
			}
			events = append(events, e)
		case 1: // client-go tools/events
			if i%3 == 0 {
				want.state, want.count, want.last = "Singleton", 1, first
			} else {
				e.Regarding.Name = fmt.Sprintf("pod-of-%d", i) // of its own: a later Event of the key says that the series is over
				series()
				want.state = "Ongoing"
				if stale {
					want.state = "Unknown"
				}
			}
			events = append(events, e)
		case 2: // client-go tools/record; its times have no fractions of a second
			first, last = first.Truncate(time.Second), last.Truncate(time.Second)
			pod.Name = fmt.Sprintf("legacy-%d", i) // of its own: events about one Pod share a spam filter
			want.state, want.first, want.last = "Ongoing", first, last
			switch {
			case stale:
				want.state = "Quiet"
			case last.Sub(first) > 36*time.Minute*time.Duration(count-1):
				want.state = "Unknown" // no loop, as far as the Event tells
			}
			if i%3 == 0 {
				want.state, want.count, last, want.last = "Singleton", 1, first, first
			}
			legacy = append(legacy, &corev1.Event{
				ObjectMeta: e.ObjectMeta, InvolvedObject: pod, Reason: e.Reason, Message: e.Note, Type: e.Type,
				Source: corev1.EventSource{Component: "legacy"}, Count: want.count,
				FirstTimestamp: metav1.NewTime(first), LastTimestamp: metav1.NewTime(last),
			})
		default: // neither count nor times; the server knows when it was created
			want.state, want.count, want.first, want.last = "Singleton", 1, time.Time{}, time.Time{}
			legacy = append(legacy, &corev1.Event{
				ObjectMeta: e.ObjectMeta, InvolvedObject: pod, Reason: e.Reason, Message: e.Note, Type: e.Type,
			})
		}
		if want.count > 1 {
			want.rate = float64(want.count-1) / last.Sub(first).Seconds()
		}
		all = append(all, want)
	}
	return events, legacy, all
}

func number(t *testing.T, w expected) (n int) {
	t.Helper()
	_, err := fmt.Sscanf(w.name, "e%d", &n)
	require.NoError(t, err)
	return n
}

func TestListOfFourRecorders(t *testing.T) {
	namespace := apiserver.Namespace(t)
	clients := apiserver.Clientset(t)
	kubeconfig := apiserver.Kubeconfig(t)
	now := time.Now()
	events, legacy, want := population(namespace, 10_000, now.Truncate(time.Microsecond))
	create(t, clients, events, legacy)

	got := items(t, show(t, kubeconfig, "-n", namespace, "-o", "json"))
	require.Len(t, got, len(want))
	created := make(map[string]time.Time)
	for _, p := range got {
		created[p.Metadata.Name] = p.Metadata.CreationTimestamp.Time
	}
	for i := range want {
		if want[i].last.IsZero() {
			want[i].first, want[i].last = created[want[i].name], created[want[i].name]
		}
	}
	rank := map[string]int{"Ongoing": 0, "Unknown": 1, "Quiet": 2, "Finished": 3, "Singleton": 4}
	slices.SortStableFunc(want, func(a, b expected) int {
		return cmp.Or(cmp.Compare(rank[a.state], rank[b.state]), b.last.Compare(a.last), cmp.Compare(a.name, b.name))
	})
	states := map[string]int{}
	for i, w := range want {
		p := got[i]
		states[p.State]++
		require.Equal(t, w.name, p.Metadata.Name, "row %d: %v", i, w)
		require.Equal(t, w.state, p.State, w.name)
		require.Equal(t, w.count, p.Count, w.name)
		require.InDelta(t, w.rate, p.Rate, 1e-5, w.name)
		require.Equal(t, w.last.UnixMicro(), p.Last.UnixMicro(), w.name)
	}
	for state := range rank {
		assert.Greater(t, states[state], 500, state)
	}

	rows := lines(show(t, kubeconfig, "-n", namespace))
	require.Len(t, rows, len(want)+1)
	assert.Equal(t, []string{"STATE", "LAST", "COUNT", "RATE", "TYPE", "REASON", "OBJECT", "RELATED", "NOTE"}, strings.Fields(rows[0]))
	for i, row := range rows[1:] {
		cells := strings.Fields(row)
		require.Equal(t, want[i].state, cells[0], row)
		count := fmt.Sprint(want[i].count)
		if want[i].count > 1 && number(t, want[i])%4 == 2 {
			count += "+" // a lower bound
		}
		require.Equal(t, count, cells[2], row)
	}

	// Each selector returns the same rows in the same order.
	subset := func(keep func(expected) bool) []string {
		var all []string
		for _, w := range want {
			if keep(w) {
				all = append(all, w.name)
			}
		}
		return all
	}
	hourAgo := now.Add(-time.Hour).Truncate(time.Second)
	for _, test := range []struct {
		args []string
		keep func(expected) bool
	}{
		{[]string{"--state", "ongoing,Finished"}, func(w expected) bool { return w.state == "Ongoing" || w.state == "Finished" }},
		{[]string{"--state", "quiet"}, func(w expected) bool { return w.state == "Quiet" }},
		{[]string{"--controller", "legacy"}, func(w expected) bool { return number(t, w)%4 == 2 }},
		{[]string{"pod/pod-7", "po/pod-8"}, func(w expected) bool { return number(t, w)%100 == 7 || number(t, w)%100 == 8 }},
		{[]string{"--for", "Pod/pod-7"}, func(w expected) bool { return number(t, w)%100 == 7 }},
		{[]string{"--since", hourAgo.Format(time.RFC3339)}, func(w expected) bool { return !w.last.Before(hourAgo) }},
		{[]string{"--began", hourAgo.Format(time.RFC3339)}, func(w expected) bool { return !w.first.Before(hourAgo) }},
		{[]string{"-l", "eventseries.dev/state=Finished"}, func(w expected) bool { return w.state == "Finished" }},
		{[]string{"--field-selector", "regarding.name=pod-7"}, func(w expected) bool { return number(t, w)%100 == 7 }},
		{[]string{"--chunk-size", "0", "--limit", "3"}, func(w expected) bool {
			return w.name == want[0].name || w.name == want[1].name || w.name == want[2].name
		}},
	} {
		var all []string
		for _, name := range lines(show(t, kubeconfig, append(test.args, "-n", namespace, "-o", "name")...)) {
			all = append(all, strings.TrimPrefix(name, "event.events.k8s.io/"))
		}
		keep := subset(test.keep)
		assert.True(t, slices.Equal(keep, all), "%v: want %d series, got %d, or another order", test.args, len(keep), len(all))
	}

	top := show(t, kubeconfig, "top", "-n", namespace, "-o", "json")
	var occurrences int64
	for _, w := range want {
		if number(t, w)%4 == 2 {
			occurrences += int64(w.count)
		}
	}
	assert.Contains(t, top, fmt.Sprintf(`"occurrences": %d,`, occurrences))

	// A file has the same rows as the server.
	list, err := clients.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("EventList"))
	data, err := json.Marshal(list)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "events.json")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	args := []string{"-o", "custom-columns=NAME:.metadata.name,STATE:.state,COUNT:.count,RATE:.rate,LAST:.lastObservedTime,NOTE:.note,BY:.reportingController"}
	assert.Equal(t, show(t, kubeconfig, append(args, "-n", namespace)...), show(t, "no such file", append(args, "-f", file)...))
}
