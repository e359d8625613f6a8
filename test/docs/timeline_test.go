package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// timelines are those of docs/delivery.md, by heading: when series occur for the first time, each by its namespace and object, and
// which responses of the server are 500 or lost. A lost one is a write that the server has stored. Those of loops occur each 10 seconds.
var timelines = map[string]struct {
	loops, single map[string]time.Duration
	until         time.Duration
	fault         func(namespace string, at time.Duration) string
}{
	"### 500 for 50 minutes": {
		loops: map[string]time.Duration{"shop/web": 0}, single: map[string]time.Duration{"shop/db": 40 * time.Minute, "bank/api": 45 * time.Minute},
		until: 2 * time.Hour,
		fault: func(namespace string, at time.Duration) string {
			if namespace == "shop" && at >= 20*time.Minute && at < 70*time.Minute {
				return "500"
			}
			return ""
		},
	},
	"## A response is lost": {
		loops: map[string]time.Duration{"shop/web": 0}, until: 35 * time.Minute,
		fault: func(_ string, at time.Duration) string {
			if at == 0 || at == 10*time.Second {
				return "lost"
			}
			return ""
		},
	},
}

// The timelines are what a tracker does. "…" stands for requests that are left out, and a comment follows three spaces.
func TestTimelines(t *testing.T) {
	page := read(t, "docs/delivery.md")
	for heading, line := range timelines {
		log, isLeftOut := replay(line.loops, line.single, line.until, line.fault), false
		_, section, _ := strings.Cut(page, heading+"\n")
		_, section, _ = strings.Cut(section, "```text\n")
		section, _, ok := strings.Cut(section, "```\n")
		assert.True(t, ok, "no timeline after %s", heading)
		for text := range strings.Lines(section) {
			if strings.TrimSpace(text) == "…" {
				isLeftOut = true
				continue
			}
			text = timelineRow.FindString(text)
			i := slices.Index(log, strings.Join(strings.Fields(text), " "))
			if !assert.True(t, i == 0 || i > 0 && isLeftOut, "%s: %q is not what comes next:\n%s", heading, text, strings.Join(log, "\n")) {
				break
			}
			log, isLeftOut = log[i+1:], false
		}
	}
}

var timelineRow = regexp.MustCompile(`^.* count \d+`)

// replay returns the requests of a tracker: time, object, kind, response, and count.
func replay(loops, single map[string]time.Duration, until time.Duration, fault func(string, time.Duration) string) (log []string) {
	start := time.Unix(0, 0)
	tr := tracker.New(tracker.Options{}, start)
	stored := map[string]*eventsv1.Event{}
	occur := func(of map[string]time.Duration, at, again time.Duration) {
		for name, next := range of {
			if namespace, object, _ := strings.Cut(name, "/"); at >= next {
				of[name] = next + again
				tr.Observe(&series.Key{ReportingController: "c", Type: corev1.EventTypeWarning, Reason: "Failed",
					Regarding: series.Reference{Namespace: namespace, Name: object}}, tracker.Occurrence{}, start.Add(at))
			}
		}
	}
	for at := time.Duration(0); at < until; at += 100 * time.Millisecond {
		occur(loops, at, 10*time.Second)
		occur(single, at, until)
		tr.Advance(start.Add(at))
		for w, _, ok := tr.Next(start.Add(at)); ok; w, _, ok = tr.Next(start.Add(at)) {
			code, result := fault(w.Series.Namespace, at), tracker.Result{Outcome: tracker.Troubled}
			switch code {
			case "":
				code, result = store(stored, w)
			case "lost":
				store(stored, w)
			}
			log = append(log, fmt.Sprintf("%v %s/%s %v %s count %d", at.Round(time.Second), w.Series.Namespace, w.Series.Key.Regarding.Name, w.Kind, code, w.Series.Count))
			tr.Apply(w, result, start.Add(at))
		}
	}
	return log
}

// store answers a write as a server does.
func store(events map[string]*eventsv1.Event, w *tracker.Write) (code string, r tracker.Result) {
	event := events[w.Series.Name]
	switch {
	case event == nil && !w.Creates():
		return "404", tracker.Result{Outcome: tracker.Gone}
	case event != nil && w.Creates():
		return "409", tracker.Result{Outcome: tracker.Taken}
	case event != nil && w.Series.Version != "" && w.Series.Version != event.ResourceVersion:
		return "409", tracker.Result{Outcome: tracker.Changed}
	case w.Kind != tracker.Look:
		event = w.Series.Event()
		event.ResourceVersion = w.Series.Version + "1" // another one than before
		events[w.Series.Name] = event
	}
	return "ok", tracker.Result{Outcome: tracker.Written, Event: event}
}
