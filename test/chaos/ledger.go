package chaos

import (
	"fmt"
	"slices"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
)

// ledger holds the accounts of all lives of all emitters against what is on the
// server.
type ledger [][]*account

// difference is a key whose Events do not tell what was emitted.
type difference struct {
	emitter, key int
	// sum is that of the counts on the server, low and high are the bounds.
	sum, low, high int64
	// begun is how many Events there can be.
	begun int
	// events are those that there are, the first one first.
	events []*eventsv1.Event
	// lives are the accounts of the key.
	lives []string
}

// compare returns the keys with which something is wrong.
func (l ledger) compare(found []eventsv1.Event) (wrong []difference) {
	type id struct{ emitter, key int }
	of := make(map[id][]*eventsv1.Event)
	for i := range found {
		emitter, key, ok := parseSubject(found[i].Regarding.Name)
		if !ok || emitter >= len(l) || key >= keysPerEmitter {
			emitter, key = -1, -1
		}
		of[id{emitter, key}] = append(of[id{emitter, key}], &found[i])
	}
	if strangers := of[id{-1, -1}]; len(strangers) > 0 {
		wrong = append(wrong, difference{emitter: -1, key: -1, events: strangers})
	}
	for emitter, lives := range l {
		for key := range keysPerEmitter {
			d := difference{emitter: emitter, key: key, events: of[id{emitter, key}]}
			for i, a := range lives {
				low, high, begun := a.bounds(key)
				d.low += low
				d.high += high
				d.begun += begun
				if high > 0 {
					d.lives = append(d.lives, fmt.Sprintf("life %d (ended: %v): %+v", i, a.ended, a.keys[key]))
				}
			}
			for _, event := range d.events {
				d.sum += int64(occurrences(event))
			}
			if d.sum < d.low || d.sum > d.high || len(d.events) > d.begun {
				wrong = append(wrong, d)
			}
		}
	}
	return wrong
}

// occurrences returns how many occurrences an Event tells of.
func occurrences(event *eventsv1.Event) int {
	if event.Series == nil {
		return 1
	}
	return int(event.Series.Count)
}

func (d difference) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "emitter %d, key %d: %d occurrences in %d Events; expected %d to %d occurrences in at most %d Events\n",
		d.emitter, d.key, d.sum, len(d.events), d.low, d.high, d.begun)
	for _, life := range d.lives {
		fmt.Fprintf(&text, "\t%s\n", life)
	}
	slices.SortFunc(d.events, func(a, b *eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	for _, event := range d.events {
		fmt.Fprintf(&text, "\t%s\n", describe(event))
	}
	return text.String()
}
