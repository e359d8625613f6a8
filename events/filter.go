package events

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/eventseries/eventseries/internal/filter"
	"github.com/eventseries/eventseries/series"
)

// Filter says which events a broadcaster records. It consists of field selectors in the
// syntax of Kubernetes. The zero value selects all events. A Filter can be used
// concurrently, and must not be copied after its first use.
//
// It is a [flag.Value], and one of pflag. This binds a filter to a flag:
//
//	flag.Var(&filter, "event-filter", "which events to record, such as reason!=Synced")
//
// Call [Filter.Set] again to change it, for example with the value of a ConfigMap, while
// broadcasters with [Options].Filter run:
//
//   - A broadcaster ends the Ongoing series that the filter excludes now. Their last write
//     says Finished, and contains their exact counts. If the filter selects them again,
//     they continue in the same Events while the server keeps these.
//   - What the filter excludes and the server does not have yet is not written.
//   - There are no other requests for what the filter excludes.
//
// What a filter excludes is counted in [Stats].Filtered. It is no loss: the recorder
// neither logs it nor calls [Options].OnDrop. Event handlers in this process do not get it.
type Filter struct {
	current      atomic.Pointer[parsedFilter] // nil: all events
	broadcasters sync.Map                     // with this filter, as keys
}

type parsedFilter struct {
	text      string
	selectors filter.Selectors
}

// Set replaces the filter. Each line of text is a field selector such as
// "type=Normal,reason!=Synced", with the operators =, ==, and !=, over the fields type,
// reason, action, regarding.kind, regarding.namespace, related.kind, and
// reportingController, as Events have them. An event must meet all requirements of at
// least one line. So to exclude several reasons, write them in one line:
//
//	reason!=Synced,reason!=Pulled
//
// Spaces around a requirement, empty lines, and lines that begin with # are ignored. If nothing is
// left, the filter selects all events. "type!=Normal,type!=Warning" selects none.
//
// If text is not valid, Set returns an error with the number of the line and the value that is
// wrong, and the filter stays as it was. When Set returns, all broadcasters follow the new filter.
func (f *Filter) Set(text string) error {
	selectors, err := filter.Parse(text)
	if err != nil {
		return fmt.Errorf("events: filter: %w", err)
	}
	f.current.Store(&parsedFilter{text, selectors})
	f.broadcasters.Range(func(b, _ any) bool {
		b.(*Broadcaster).refilter()
		return true
	})
	return nil
}

// String returns the text of the latest call of [Filter.Set] that has succeeded.
func (f *Filter) String() string {
	if f == nil {
		return ""
	}
	if parsed := f.current.Load(); parsed != nil {
		return parsed.text
	}
	return ""
}

// Type returns what a value of the flag is, for the help texts of pflag.
func (f *Filter) Type() string { return "fieldSelectors" }

// selects reports whether events with a key are recorded.
func (f *Filter) selects(k *series.Key) bool {
	parsed := f.current.Load()
	return parsed == nil || parsed.selectors.Match(k)
}

func (b *Broadcaster) refilter() {
	b.drop(b.logger(), nil, b.tracker.Refilter(b.clock.Now()))
	b.poke()
}
