package events

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/eventseries/eventseries/internal/tracker"
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
//     says Finished, and contains their exact counts. If the filter selects them again
//     within [Options].MaxWindow, they continue in the same Events.
//   - What the filter excludes and the server does not have yet is not written.
//   - There are no other requests for what the filter excludes.
//
// What a filter excludes is counted in [Stats].Filtered. It is no loss: the recorder
// neither logs it nor calls [Options].OnDrop. Event handlers in this process do not get it.
type Filter struct {
	current atomic.Pointer[selectors] // nil: all events

	mu           sync.Mutex
	broadcasters sets.Set[*Broadcaster] // that have this filter
}

// selectors are what a filter consists of.
type selectors struct {
	text string
	any  []selector // of which an event matches at least one; empty: all events
}

// selector is a list of requirements that an event must meet.
type selector []requirement

type requirement struct {
	field    string
	value    string
	excludes bool // the field must not have the value
}

// filterFields are the fields that selectors can name.
var filterFields = []string{"action", "reason", "regarding.kind", "regarding.namespace", "related.kind", "reportingController", "type"}

// valueOf returns the value of one of the filterFields. A table of functions would put the
// key of each occurrence on the heap.
func valueOf(field string, k *series.Key) string {
	switch field {
	case "action":
		return k.Action
	case "reason":
		return k.Reason
	case "regarding.kind":
		return k.Regarding.Kind
	case "regarding.namespace":
		return k.Regarding.Namespace
	case "related.kind":
		return k.Related.Kind
	case "reportingController":
		return k.ReportingController
	default:
		return k.Type
	}
}

// Set replaces the filter. Each line of text is a field selector such as
// "type=Normal,reason!=Synced", with the operators =, ==, and !=, over the fields type,
// reason, action, regarding.kind, regarding.namespace, related.kind, and
// reportingController, as Events have them. An event must meet all requirements of at
// least one line. So to exclude several reasons, write them in one line:
//
//	reason!=Synced,reason!=Pulled
//
// Spaces around a requirement, empty lines, and lines that begin with # are ignored. If
// nothing is left, the filter selects all events. "type!=Normal,type!=Warning" selects
// none.
//
// If text is not valid, Set returns an error with the line, the column, and the value that
// is wrong, and the filter stays as it was. When Set returns, all broadcasters follow the
// new filter.
func (f *Filter) Set(text string) error {
	parsed, err := parseSelectors(text)
	if err != nil {
		return err
	}
	f.current.Store(parsed)
	f.mu.Lock()
	all := slices.Collect(maps.Keys(f.broadcasters))
	f.mu.Unlock()
	for _, b := range all { // without the lock, because it can call OnDrop
		b.refilter()
	}
	return nil
}

// String returns the text of the latest call of [Filter.Set] that has succeeded.
func (f *Filter) String() string {
	if f == nil {
		return ""
	}
	if s := f.current.Load(); s != nil {
		return s.text
	}
	return ""
}

// Type returns what a value of the flag is, for the help texts of pflag.
func (f *Filter) Type() string { return "fieldSelectors" }

// selects reports whether events with a key are recorded. A nil filter selects all.
func (f *Filter) selects(k *series.Key) bool {
	if f == nil {
		return true
	}
	s := f.current.Load()
	return s == nil || len(s.any) == 0 || slices.ContainsFunc(s.any, func(one selector) bool { return one.matches(k) })
}

func (s selector) matches(k *series.Key) bool {
	for i := range s {
		if (valueOf(s[i].field, k) == s[i].value) == s[i].excludes {
			return false
		}
	}
	return true
}

func (f *Filter) add(b *Broadcaster) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broadcasters == nil {
		f.broadcasters = sets.New[*Broadcaster]()
	}
	f.broadcasters.Insert(b)
}

// remove makes the filter forget b, which has been shut down.
func (f *Filter) remove(b *Broadcaster) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broadcasters.Delete(b)
}

func (b *Broadcaster) refilter() {
	now := b.clock.Now()
	b.drop(b.logger(), nil, b.track(func() []tracker.Drop { return b.tracker.Refilter(now) }))
	if d := b.dispatcher.Load(); d != nil {
		d.poke()
	}
}

// filtered counts an occurrence that the filter excludes.
func (b *Broadcaster) filtered(key *series.Key) {
	b.tracker.Tally(key)
	b.counters.refused.Add(1)
	b.counters.filtered.Add(1)
}

// parseSelectors parses the argument of [Filter.Set].
func parseSelectors(text string) (*selectors, error) {
	parsed := &selectors{text: text}
	excluding := make(map[string]requirementAt) // the only requirements of their lines, by field
	number := 0
	for line := range strings.Lines(text) {
		number++
		if trimmed := strings.TrimSpace(line); trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		terms, err := parseSelector(line, number)
		if err != nil {
			return nil, err
		}
		s := make(selector, len(terms))
		for i, t := range terms {
			s[i] = requirement{t.Field, t.Value, t.Operator == selection.NotEquals}
		}
		parsed.any = append(parsed.any, s)
		if only := terms[0]; len(terms) == 1 && s[0].excludes {
			if other, ok := excluding[only.Field]; ok && other.Value != only.Value {
				return nil, only.errorf("with line %d, every event matches: write both in one line, with a comma between them", other.line)
			}
			excluding[only.Field] = only
		}
	}
	return parsed, nil
}

type requirementAt struct {
	fields.Requirement
	term         string
	line, column int
}

func (r *requirementAt) errorf(format string, args ...any) error {
	return fmt.Errorf("events: filter: line %d, column %d: %q: %w", r.line, r.column, r.term, fmt.Errorf(format, args...))
}

// parseSelector parses a line. It returns at least one requirement. It parses each by
// itself, because errors of [fields.ParseSelector] name no position.
func parseSelector(line string, number int) (all []requirementAt, err error) {
	for begin := 0; begin <= len(line); {
		end := begin + untilComma(line[begin:])
		term := strings.TrimSpace(line[begin:end])
		at := requirementAt{term: term, line: number, column: 1 + utf8.RuneCountInString(line[:begin+strings.Index(line[begin:end], term)])}
		begin = end + 1
		parsed, err := fields.ParseSelector(term)
		if err != nil {
			return nil, at.errorf("want a field, =, ==, or !=, and a value in which commas, equals signs, and backslashes have a backslash before them")
		}
		for _, at.Requirement = range parsed.Requirements() { // one, or none between two commas
			at.Field, at.Value = strings.TrimSpace(at.Field), strings.TrimSpace(at.Value)
			if err := at.validate(); err != nil {
				return nil, err
			}
			all = append(all, at)
		}
	}
	if len(all) == 0 {
		return nil, (&requirementAt{term: strings.TrimSpace(line), line: number, column: 1}).errorf("no requirement")
	}
	return all, nil
}

// untilComma returns the length of s up to its first comma without a backslash before it.
func untilComma(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case ',':
			return i
		}
	}
	return len(s)
}

func (r *requirementAt) validate() error {
	if !slices.Contains(filterFields, r.Field) {
		return r.errorf("unknown field %q: want one of %s", r.Field, strings.Join(filterFields, ", "))
	}
	if r.Field == "type" && r.Value != corev1.EventTypeNormal && r.Value != corev1.EventTypeWarning {
		return r.errorf("unknown type %q: want %s or %s", r.Value, corev1.EventTypeNormal, corev1.EventTypeWarning)
	}
	if v := r.Value; len(v) > 1 && strings.ContainsRune("\"'`", rune(v[0])) && v[0] == v[len(v)-1] {
		return r.errorf("no event has quotes around its %s: want %s without them", r.Field, v)
	}
	return nil
}
