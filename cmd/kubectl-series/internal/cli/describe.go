package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/terminal"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/timeline"
	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
)

type describe struct{ *environment }

func newDescribe(e *environment) *cobra.Command {
	d := &describe{e}
	return &cobra.Command{
		Use:   "describe EVENT...",
		Short: "Show a series in full",
		Long: `Show a series in full: its state and the reason for it, its notes, and the series
of the same key before and after it.

EVENT is the name of an Event, as "kubectl series -o name" prints it.`,
		Example: `  # The series of an Event
  kubectl series describe checkout-0.0b15ecc7dc9dbda7

  # The busiest series of the namespace
  kubectl series describe $(kubectl series --sort-by rate --limit 1 -o name)`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("no arguments: want the name of an Event, as %q prints it", "kubectl series -o name")
			}
			return nil
		},
		ValidArgsFunction: completeEvents(e),
		RunE: func(c *cobra.Command, args []string) error {
			return d.run(c.Context(), args)
		},
	}
}

func (d *describe) run(ctx context.Context, args []string) error {
	var names []string
	for _, arg := range args {
		name, err := eventName(arg)
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	namespace, err := d.namespace()
	if err != nil {
		return err
	}
	reader, progress, err := d.reader(query.Options{ManagedFields: true})
	if err != nil {
		return err
	}
	defer progress.clear()
	for i, name := range names {
		item, err := reader.Get(ctx, namespace, name)
		if apierrors.IsNotFound(err) {
			return d.noEvent(ctx, reader, name, namespace)
		}
		if err != nil {
			return err
		}
		chain, err := reader.Chain(ctx, item)
		if err != nil {
			return err
		}
		progress.clear()
		if i > 0 {
			fmt.Fprintln(d.Out)
		}
		b := bufio.NewWriter(d.Out)
		for _, f := range description(chain) {
			fmt.Fprint(b, f.format(terminal.Of(d.Out, d.colors)))
		}
		if err := b.Flush(); err != nil {
			return err
		}
		if err := timeline.WriteNext(d.Out, d.next(ctx, item)); err != nil {
			return err
		}
	}
	return nil
}

// noEvent returns the error for an Event that does not exist: where one of this name does, or where to
// find others.
func (d *describe) noEvent(ctx context.Context, reader *query.Reader, name, namespace string) error {
	q := query.Query{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	for item, err := range reader.List(ctx, q) {
		if err != nil {
			break
		}
		return fmt.Errorf("no Event %q in the namespace %s, but in %s: pass %q", name, namespace, text.Clean(item.Namespace), quote(name)+" -n "+quote(item.Namespace))
	}
	if namespace == "" {
		return fmt.Errorf("no Event %q: see %q", name, "kubectl series -o name"+d.fileArguments())
	}
	return fmt.Errorf("no Event %q in the namespace %s: see %q", name, namespace, "kubectl series -o name -n "+namespace+d.fileArguments())
}

// next returns the commands that show the objects of a series, and what is connected with them.
func (d *describe) next(ctx context.Context, item *query.Item) []timeline.Hop {
	regarding := d.objectOf(item.Key.Regarding, item.Namespace)
	hops := []hop{{regarding, "regarding"}}
	if !item.Key.Related.IsZero() {
		hops = append(hops, hop{d.objectOf(item.Key.Related, item.Namespace), "related"})
	}
	owners, _ := d.chain(ctx, regarding)
	return d.commands(append(hops, d.specified(ctx, regarding, owners)...), regarding, query.Object{})
}

// eventName returns the name of an Event: NAME, or event.events.k8s.io/NAME.
func eventName(arg string) (string, error) {
	kind, name, ok := strings.Cut(arg, "/")
	if !ok {
		return arg, nil
	}
	if resource, _, _ := strings.Cut(strings.ToLower(kind), "."); !slices.Contains([]string{"event", "events", "ev"}, resource) || name == "" {
		return "", fmt.Errorf("%q: want the name of an Event; %q shows an object", arg, "kubectl series timeline "+arg)
	}
	return name, nil
}

// field is a line of a description.
type field struct {
	name, value string
	color       terminal.Color
	more        []string // lines below
}

func (f *field) format(t terminal.Terminal) string {
	s := text.Pad(f.name+":", 17) + t.Paint(f.value, f.color) + "\n"
	for _, line := range f.more {
		s += strings.Repeat(" ", 17) + line + "\n"
	}
	return s
}

func description(c *query.Chain) []field {
	i := c.Item
	e := i.Event
	fields := []field{
		{name: "Event", value: text.Clean(i.Name)},
		{name: "Namespace", value: text.Clean(i.Namespace)},
		{name: "State", value: why(i), color: timeline.StateColor(i.State)},
	}
	if quiet := window(i); quiet != "" {
		fields = append(fields, field{name: "Quiet Window", value: quiet})
	}
	fields = append(fields, []field{
		{name: "Type", value: text.Clean(e.Type), color: timeline.TypeColor(e.Type)},
		{name: "Reason", value: text.Clean(e.Reason)},
		{name: "Action", value: text.Clean(e.Action)},
		{name: "Regarding", value: reference(i.Key.Regarding)},
		{name: "Related", value: reference(i.Key.Related)},
		{name: "Controller", value: text.Clean(i.Controller())},
		{name: "Node", value: text.Clean(i.Node())},
		{name: "Instance", value: text.Clean(cmp.Or(e.ReportingInstance, e.DeprecatedSource.Host))},
		{name: "Recorder", value: string(i.Recorder)},
		{name: "First", value: instant(i.First, i.At)},
		{name: "Last", value: instant(i.Last, i.At)},
		{name: "Count", value: text.AtLeast(fmt.Sprint(i.Count), i.LowerBound())},
		{name: "Rate", value: rate(i)},
	}...)
	if i.LastNote != "" && i.LastNote != i.Note {
		fields = append(fields, note("First Note", i.Note), note("Latest Note", i.LastNote))
	} else {
		fields = append(fields, note("Note", i.Note))
	}
	fields = append(fields, pairs("Labels", e.Labels), pairs("Annotations", e.Annotations))
	fields = append(fields, chain("Predecessors", c.Predecessors), chain("Successors", c.Successors))
	if i.Problem != nil {
		fields = append(fields, field{name: "Problem", value: message(i.Problem), color: terminal.Red})
	}
	for n := range fields {
		if fields[n].value == "" {
			fields[n].value = "<none>"
		}
	}
	return fields
}

func why(i *query.Item) string {
	switch i.State {
	case series.Ongoing:
		if i.Stated == series.Ongoing {
			return "Ongoing: next heartbeat expected at " + instant(i.NextWrite, i.At)
		}
		return fmt.Sprintf("Ongoing: occurred more than once; its recorder writes no states, so it counts as ongoing until %s", instant(i.StaleAt, i.At))
	case series.Quiet:
		return fmt.Sprintf("Quiet since %s: its recorder would have written another occurrence, so the loop or its process has probably ended", instant(i.Last, i.At))
	case series.Unknown:
		return "Unknown: " + whyUnknown(i)
	case series.Finished:
		if at := lastWrite(i); !at.IsZero() {
			return "Finished at " + instant(at, i.At)
		}
		since := "has not occurred since " + instant(i.Last, i.At)
		if at := i.Last.Add(i.QuietWindow()); !at.After(i.At) {
			return "Finished at about " + instant(at, i.At) + ": " + since
		}
		return "Finished: " + since
	default:
		return "Singleton: occurred once"
	}
}

func whyUnknown(i *query.Item) string {
	switch {
	case i.Last.IsZero():
		return "the Event does not contain the time of its last occurrence"
	case !i.Followed.IsZero():
		return fmt.Sprintf("its controller reported something else about the object at %s, after the latest occurrence; its recorder writes no states", instant(i.Followed, i.At))
	case !i.Contended.IsZero():
		return fmt.Sprintf("not written since %s; its recorder writes only one event of an object every 5 minutes, and wrote another one at %s",
			instant(i.Last, i.At), instant(i.Contended, i.At))
	case i.Stale() && i.Stated == series.Ongoing:
		return fmt.Sprintf("stale since %s; the recorder missed the heartbeat that was expected at %s", instant(i.StaleAt, i.At), instant(i.NextWrite, i.At))
	case i.Stale():
		return fmt.Sprintf("not updated since %s; its recorder writes no states, and updates a series that goes on every %s, so the loop or its process has probably ended",
			instant(i.Last, i.At), text.Duration(i.Heartbeat))
	case i.Slow() && !i.StaleAt.IsZero():
		return "recurs less often than every 36 minutes, and its recorder writes no states"
	case i.Stated == series.Unknown:
		return "the recorder stopped to track the series while it was ongoing"
	default:
		return "the time of its last occurrence is in the future"
	}
}

// window returns for how long an ongoing series may be quiet, and what happens then.
func window(i *query.Item) string {
	if i.State != series.Ongoing {
		return ""
	}
	s := text.Duration(i.QuietWindow())
	end := i.Last.Add(i.QuietWindow())
	switch {
	case i.Stated != series.Ongoing && i.Recorder == query.ToolsRecord:
		return s + ", as far as the count and the times tell: Quiet after " + instant(i.StaleAt, i.At) + " unless it recurs"
	case i.Stated != series.Ongoing:
		return ""
	case end.After(i.At):
		return s + ": Finished at " + instant(end, i.At) + " unless it recurs"
	default: // the recorder has counted occurrences since then
		return s + ": recurred since " + instant(i.Last, i.At) + ", or it would be Finished; the next heartbeat says when"
	}
}

// lastWrite returns when the Event was written last, or zero if it has no managedFields.
// The last write to a finished series is the one that finished it.
func lastWrite(i *query.Item) time.Time {
	var last time.Time
	for _, m := range i.Event.ManagedFields {
		if m.Time != nil && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}

// instant formats a time in the zone of at, with how long it is ago, or until it comes.
func instant(t, at time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	s := t.In(at.Location()).Format("2006-01-02 15:04:05.999 MST")
	if ahead := t.Sub(at); ahead > 0 {
		return s + " (in " + text.Duration(ahead) + ")"
	}
	return s + " (" + text.Ago(t, at) + ")"
}

func rate(i *query.Item) string {
	if i.Rate() <= 0 {
		return ""
	}
	return fmt.Sprintf("%s (%d times in %s)", text.Rate(i.Rate()), i.Count, text.Duration(i.Last.Sub(i.First)))
}

func reference(ref series.Reference) string {
	if ref.IsZero() {
		return ""
	}
	part := ref.FieldPath
	ref.FieldPath = ""
	s := text.Object(ref, ref.Namespace)
	if ref.Namespace != "" {
		s += " in " + ref.Namespace
	}
	if ref.APIVersion != "" {
		s += ", " + ref.APIVersion
	}
	if ref.UID != "" {
		s += ", UID " + string(ref.UID)
	}
	if part != "" {
		s += ", " + part
	}
	return text.Clean(s)
}

func note(name, value string) field {
	lines := text.Lines(value)
	if len(lines) == 0 {
		return field{name: name}
	}
	return field{name: name, value: lines[0], more: lines[1:]}
}

func pairs(name string, values map[string]string) field {
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(values)) {
		lines = append(lines, text.Clean(k+": "+values[k]))
	}
	return note(name, strings.Join(lines, "\n"))
}

// chain formats series of the same key, one on each line.
func chain(name string, items []*query.Item) field {
	var lines []string
	for _, i := range items {
		lines = append(lines, fmt.Sprintf("%s: %s, %s, first at %s, last at %s",
			text.Clean(i.Name), i.State, text.Plural(int(i.Count), "occurrence"), instant(i.First, i.At), instant(i.Last, i.At)))
	}
	return note(name, strings.Join(lines, "\n"))
}
