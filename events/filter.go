package events

import (
	"fmt"
	"sync/atomic"

	"github.com/eventseries/eventseries/internal/filter"
	"github.com/eventseries/eventseries/series"
)

// Filter selects events with field selectors in the syntax of Kubernetes. The zero value selects
// all events. A Filter can be used concurrently, and must not be copied after its first use.
//
// It is a [flag.Value], and one of pflag. This binds a filter to a flag:
//
//	var filter events.Filter
//	flag.Var(&filter, "event-filter", "which events to record, such as reason!=Synced")
//	flag.Parse()
//	opts := events.Options{Filter: filter.Selects}
//
// Call [Filter.Set] again to change it, for example with the value of a ConfigMap, while
// broadcasters have it. What a new filter excludes is counted in [Stats].Filtered from then on. A
// series that it excludes ends after its window, with the count that it had. If the filter selects
// the series again, that continues in the same Event while the server keeps the Event.
//
// What a filter excludes is no loss: the recorder neither logs it nor calls [Options].OnDrop. Event
// handlers in this process do not get it.
type Filter struct {
	current atomic.Pointer[parsedFilter] // nil: all events
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
// wrong, and the filter stays as it was.
func (f *Filter) Set(text string) error {
	selectors, err := filter.Parse(text)
	if err != nil {
		return fmt.Errorf("events: filter: %w", err)
	}
	f.current.Store(&parsedFilter{text, selectors})
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

// Selects reports whether the filter selects events with a key, for [Options].Filter.
func (f *Filter) Selects(key series.Key) bool {
	parsed := f.current.Load()
	return parsed == nil || parsed.selectors.Match(&key)
}
