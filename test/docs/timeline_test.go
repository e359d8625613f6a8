package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// timelines are those of docs/delivery.md, by heading: how long they take, which objects have an event at a time, and which responses are
// 500, or lost after the server has stored the write.
var timelines = map[string]struct {
	until  time.Duration
	events map[string]func(at time.Duration) bool
	fault  func(namespace string, at time.Duration) string
}{
	"### 500 for 50 minutes": {
		until:  2 * time.Hour,
		events: map[string]func(time.Duration) bool{"shop/web": each10Seconds, "shop/db": once(40 * time.Minute), "bank/api": once(45 * time.Minute)},
		fault: func(namespace string, at time.Duration) string {
			return map[bool]string{true: "500"}[namespace == "shop" && at >= 20*time.Minute && at < 70*time.Minute]
		},
	},
	"## A response is lost": {
		until:  35 * time.Minute,
		events: map[string]func(time.Duration) bool{"shop/web": each10Seconds},
		fault: func(_ string, at time.Duration) string {
			return map[bool]string{true: "lost"}[at == 0 || at == 10*time.Second]
		},
	},
}

func each10Seconds(at time.Duration) bool { return at%(10*time.Second) == 0 }

func once(when time.Duration) func(time.Duration) bool {
	return func(at time.Duration) bool { return at == when }
}

// The timelines are what a tracker does. "…" stands for requests that are left out, and a comment follows three spaces.
func TestTimelines(t *testing.T) {
	page := read(t, "docs/delivery.md")
	for heading, line := range timelines {
		log, isLeftOut := replay(line.until, line.events, line.fault), false
		_, section, _ := strings.Cut(page, heading+"\n")
		_, section, _ = strings.Cut(section, "```text\n")
		section, _, ok := strings.Cut(section, "```\n")
		require.True(t, ok, "no timeline after %s", heading)
		for text := range strings.Lines(section) {
			if strings.TrimSpace(text) == "…" {
				isLeftOut = true
				continue
			}
			text = timelineRow.FindString(text)
			i := slices.Index(log, strings.Join(strings.Fields(text), " "))
			require.True(t, i == 0 || i > 0 && isLeftOut, "%s: %q is not what comes next:\n%s", heading, text, strings.Join(log, "\n"))
			log, isLeftOut = log[i+1:], false
		}
	}
}

var timelineRow = regexp.MustCompile(`^.* count \d+`)

// replay returns the requests of a tracker: time, object, kind, response, and count.
func replay(until time.Duration, events map[string]func(time.Duration) bool, fault func(string, time.Duration) string) (log []string) {
	start, stored := time.Unix(0, 0), map[string]stored{}
	tr := tracker.New(tracker.Options{}, start)
	for at := time.Duration(0); at < until; at += 100 * time.Millisecond {
		for name, occurs := range events {
			if namespace, object, _ := strings.Cut(name, "/"); occurs(at) {
				tr.Observe(&series.Key{ReportingController: "c", Type: corev1.EventTypeWarning, Reason: "Failed", Regarding: series.Reference{Namespace: namespace, Name: object}},
					tracker.Occurrence{}, start.Add(at))
			}
		}
		for w, _, _ := tr.Next(start.Add(at), true); w != nil; w, _, _ = tr.Next(start.Add(at), true) {
			response, result := fault(w.Series.Namespace, at), tracker.Response{Outcome: schedule.Troubled, MayBeStored: true}
			if response != "500" {
				code, answer := store(stored, w, at)
				if response == "" {
					response, result = code, answer
				}
			}
			log = append(log, fmt.Sprintf("%v %s/%s %v %s count %d", at.Round(time.Second), w.Series.Namespace, w.Series.Key.Regarding.Name, w.Kind, response, w.Series.Count))
			tr.Apply(w, result, start.Add(at))
		}
	}
	return log
}

// stored is an Event on the server, and when it was written.
type stored struct {
	*eventsv1.Event
	at time.Duration
}

// store answers a write as a server does.
func store(events map[string]stored, w *tracker.Write, at time.Duration) (response string, r tracker.Response) {
	event, ok := events[w.Series.Name]
	switch ok = ok && at < event.at+time.Hour; {
	case ok && w.Creates():
		return "409", tracker.Response{Outcome: schedule.Taken}
	case !ok && !w.Creates():
		return "404", tracker.Response{Outcome: schedule.Gone}
	case ok && w.Series.Version != "" && w.Series.Version != event.ResourceVersion:
		return "409", tracker.Response{Outcome: schedule.Changed}
	case w.Kind != tracker.Look:
		event = stored{w.Series.Event(), at}
		event.ResourceVersion = w.Series.Version + "1" // another one than before
		events[w.Series.Name] = event
	}
	return "ok", tracker.Response{Outcome: schedule.Written, Event: event.Event}
}
