package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/jsonpath"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/group"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/output"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/table"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/terminal"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
)

// list is the root command.
type list struct {
	*environment
	filters
	output          string
	noHeaders       bool
	missingKeys     bool
	sortBy          string
	limit           int
	sorted          bool // the caller chose an order
	groupBy         string
	watch           bool
	watchOnly       bool
	watchEvents     bool
	managedFields   bool
	printer         *output.Printer // nil for a table
	wide, namespace bool            // columns of the table
	terminal        terminal.Terminal
	rowCount        int
	ongoingCount    int
}

func newList(e *environment) *cobra.Command {
	l := &list{environment: e}
	c := &cobra.Command{
		Use:   "kubectl-series [KIND/NAME... | KIND [NAME...] | NAME]",
		Short: "Show the events of a cluster as series: what is going on, since when, and how often",
		Long: `Show the events of a cluster as series: what is going on, since when, and how often.

A series is an event that occurs again and again. Its state is Ongoing while it
recurs, Finished when it has stopped, Quiet if a recorder that writes each
occurrence writes no more, Unknown if nobody knows, and Singleton if it occurred
once. Ongoing series come first.

Without arguments, show the series of the current namespace. With arguments,
show those about the given objects and, with --related, those in which they are
the related object, wherever these Events are. A name without a kind is looked up
in the namespace of -n, otherwise in all, as far as you may list them. It needs the
permission to list events.

With --filename, read the Events from files, and use no cluster.`,
		Example: `  # What is going on in the namespace
  kubectl series --state ongoing

  # All warnings of the last hour, in all namespaces
  kubectl series -A --type Warning --since 1h

  # What happens to a Pod and a Node
  kubectl series pod/checkout-0 node/worker-3

  # What the notes of all namespaces say about quotas
  kubectl series -A --note quota

  # The Events of a must-gather, with the times of the place of the reader
  kubectl series -f must-gather.local.123 --time local

  # Watch what a controller reports
  kubectl series -A -w --controller kubelet

  # What a component reports on a machine
  kubectl series -A --controller kubelet --instance worker-3

  # One row for the Pods of a Deployment that say the same
  kubectl series -A --type Warning --group-by owner

  # What began in the last quarter of an hour
  kubectl series -A --began 15m

  # The names of the busiest series, for kubectl series describe
  kubectl series --sort-by rate --limit 3 -o name`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeObjects(e),
		RunE: func(c *cobra.Command, args []string) error {
			l.sorted = c.Flags().Changed("sort-by")
			return l.run(c.Context(), args)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	l.addTo(flags)
	l.addFor(flags)
	flags.StringVar(&l.sortBy, "sort-by", string(query.ByState), "Order: "+strings.Join(orders(), ", ")+", or a JSONPath expression of the printed objects")
	flags.IntVar(&l.limit, "limit", 0, "Show the first series only. Pass 0 for all.")
	flags.StringVar(&l.groupBy, "group-by", "", "One row for series with the same reason and: "+strings.Join(group.All(), ", "))
	flags.StringVarP(&l.output, "output", "o", "", "Output format: wide, "+strings.Join(output.Formats(), ", "))
	flags.BoolVar(&l.noHeaders, "no-headers", false, "Print no headers")
	flags.BoolVar(&l.missingKeys, "allow-missing-template-keys", true, "Ignore fields of a template that an object does not have")
	flags.BoolVar(&l.managedFields, "show-managed-fields", false, "Keep the managedFields when printing objects in JSON or YAML format")
	flags.BoolVarP(&l.watch, "watch", "w", false, "After listing the series, watch for changes")
	flags.BoolVar(&l.watchOnly, "watch-only", false, "Watch for changes without listing the series first")
	flags.BoolVar(&l.watchEvents, "output-watch-events", false, "Show the type of each change, and deleted Events. Implies --watch.")
	return c
}

func orders() []string { return names(query.Orders()) }

func (l *list) run(ctx context.Context, args []string) error {
	targets, err := parseTargets(args)
	if err != nil {
		return err
	}
	sorter, err := parseSorter(l.sortBy)
	if err != nil {
		return err
	}
	if l.limit < 0 {
		return fmt.Errorf("--limit %d: want 0 or more", l.limit)
	}
	if err := l.validateGroups(); err != nil {
		return err
	}
	if l.output != "" && l.output != "wide" && l.groupBy == "" {
		l.printer, err = output.New(l.output, output.Options{
			NoHeaders: l.noHeaders, StrictTemplates: !l.missingKeys, Others: []string{"wide"},
		})
		if err != nil {
			return err
		}
	}
	l.wide = l.output == "wide"
	l.namespace = l.allNamespaces || l.wide || l.offline() && *l.flags.Namespace == ""
	l.terminal = terminal.Of(l.Out, l.colors)
	if l.wide {
		l.terminal.Width = 0 // all of it
	}
	l.watch = l.watch || l.watchOnly || l.watchEvents
	if l.watch && l.offline() {
		return errors.New("--watch: a file does not change")
	}

	at := l.Now()
	q, namespace, err := l.query(ctx, l.environment, targets, at)
	if err != nil {
		return err
	}
	reader, progress, err := l.reader(query.Options{ManagedFields: l.managedFields})
	if err != nil {
		return err
	}
	defer progress.clear()
	if l.groupBy != "" {
		return l.printGroups(ctx, reader, q, namespace)
	}
	if l.watch {
		return l.runWatch(ctx, reader, q, sorter)
	}

	if l.printer != nil {
		found := false
		err := l.printer.PrintList(l.Out, sorter(func(yield func(*query.Item, error) bool) {
			for item, err := range reader.List(ctx, q) {
				if found = true; !yield(item, err) {
					return
				}
			}
		}, l.limit))
		if err == nil && !found {
			l.suggest(ctx, q)
		}
		return err
	}
	return l.printTable(ctx, reader, q, sorter, namespace)
}

// printTable prints the series as a table. The search for Events in which an object is the
// related one reads all Events, so those about the objects come first, unless the order or the
// number of rows depends on all of them.
func (l *list) printTable(ctx context.Context, reader *query.Reader, q query.Query, sorter sorter, namespace string) error {
	about := q
	direct := q.Role != query.Regarding && len(q.Objects) > 0 && l.limit == 0 && !l.sorted
	if direct {
		about.Role = query.Regarding
	}
	rows, err := l.rows(sorter(reader.List(ctx, about), l.limit))
	if err != nil {
		return err
	}
	columns := l.columns()
	shown := len(rows) > 0
	layout := table.Fit(columns, rows, l.terminal)
	if direct && shown {
		// Rows to come determine the widths, too.
		layout = table.Fit(columns, append(slices.Clip(rows), l.sample(columns, q.Objects)), l.terminal)
	}
	if shown {
		if err := printRows(l.Out, layout, rows, !l.noHeaders); err != nil {
			return err
		}
	}
	if direct {
		q.Role = query.Related
		if rows, err = l.rows(sorter(others(reader.List(ctx, q), q.Objects), 0)); err != nil {
			return err
		}
		if !shown {
			layout = table.Fit(columns, rows, l.terminal)
		}
		if len(rows) > 0 {
			if err := printRows(l.Out, layout, rows, !shown && !l.noHeaders); err != nil {
				return err
			}
		}
		shown = shown || len(rows) > 0
	}
	if !shown {
		return l.nothing(ctx, q, namespace)
	}
	l.summarize()
	return nil
}

// summarize says at the end of a table whose first rows have scrolled away how many series are
// ongoing, and which command shows them.
func (l *list) summarize() {
	if l.terminal.Height == 0 || l.rowCount+1 < l.terminal.Height { // with the headers and the prompt
		return
	}
	s := fmt.Sprintf("%s series, %s ongoing", text.Count(int64(l.rowCount)), text.Count(int64(l.ongoingCount)))
	if l.groupBy != "" {
		s = fmt.Sprintf("%s groups, %s ongoing series", text.Count(int64(l.rowCount)), text.Count(int64(l.ongoingCount)))
	}
	switch {
	case l.ongoingCount > 0 && l.ongoingCount < l.rowCount && len(l.states) == 0 && l.groupBy == "":
		s += ": " + l.called + " --state ongoing"
	case l.limit == 0:
		s += fmt.Sprintf(": %s --limit %d", l.called, max(l.terminal.Height-3, 1))
	}
	fmt.Fprintln(l.ErrOut, s)
}

// suggest warns if nothing has been found because of the case of values.
func (l *list) suggest(ctx context.Context, q query.Query) {
	if s := l.misspelled(ctx, q); s != "" {
		fmt.Fprintln(l.ErrOut, "No events found."+s)
	}
}

// rows returns the rows of series.
func (l *list) rows(items iter.Seq2[*query.Item, error]) ([][]table.Cell, error) {
	var rows [][]table.Cell
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		rows = append(rows, l.row(item))
		if l.rowCount++; item.State == series.Ongoing {
			l.ongoingCount++
		}
	}
	return rows, nil
}

func others(items iter.Seq2[*query.Item, error], objects []query.Object) iter.Seq2[*query.Item, error] {
	return func(yield func(*query.Item, error) bool) {
		for item, err := range items {
			about := err == nil && slices.ContainsFunc(objects, func(o query.Object) bool { return item.Concerns(o, query.Regarding) })
			if !about && !yield(item, err) {
				return
			}
		}
	}
}

// sample returns a row with cells of the usual widths of series in which one of the objects is the
// related one.
func (l *list) sample(columns []table.Column, objects []query.Object) []table.Cell {
	widths := map[string]int{"STATE": 9, "LAST": 5, "COUNT": 5, "RATE": 5, "REASON": 16, "OBJECT": 34}
	for _, o := range objects {
		widths["RELATED"] = max(widths["RELATED"], text.Width(o.Kind+"/"+o.Name))
	}
	return sampleOf(columns, widths)
}

// sorter sorts items, and returns the first ones if limit is positive.
type sorter func(items iter.Seq2[*query.Item, error], limit int) iter.Seq2[*query.Item, error]

func parseSorter(value string) (sorter, error) {
	if order := strings.ToLower(value); slices.Contains(orders(), order) { // in any case, as the columns are
		return func(items iter.Seq2[*query.Item, error], limit int) iter.Seq2[*query.Item, error] {
			return query.Sort(items, query.Order(order), limit)
		}, nil
	}
	if !strings.Contains(value, ".") && !strings.HasPrefix(value, "{") {
		return nil, fmt.Errorf("--sort-by %q: want one of %s, or a JSONPath expression such as .metadata.creationTimestamp", value, strings.Join(orders(), ", "))
	}
	path, err := output.ParsePath(value)
	if err != nil {
		return nil, fmt.Errorf("--sort-by: %w", err)
	}
	return func(items iter.Seq2[*query.Item, error], limit int) iter.Seq2[*query.Item, error] {
		known := false
		key := func(item *query.Item) sortKey {
			key, ok := keyOf(path, item)
			known = known || ok
			return key
		}
		return func(yield func(*query.Item, error) bool) {
			for item, err := range query.SortBy(items, key, sortKey.compare, limit) {
				if err == nil && !known {
					item, err = nil, fmt.Errorf("--sort-by %q: no series has this field: see -o json", value)
				}
				if !yield(item, err) || err != nil {
					return
				}
			}
		}
	}, nil
}

// sortKey is the value of a JSONPath expression: a number, or another value as text.
type sortKey struct {
	number float64
	text   string
}

func (k sortKey) compare(other sortKey) int {
	return cmp.Or(cmp.Compare(k.number, other.number), cmp.Compare(k.text, other.text))
}

func keyOf(path *jsonpath.JSONPath, item *query.Item) (key sortKey, ok bool) {
	values, err := output.Values(path, output.Object(item))
	if err != nil || len(values) == 0 {
		return sortKey{}, false
	}
	switch v := reflect.ValueOf(values[0].Interface()); {
	case v.CanInt():
		return sortKey{number: float64(v.Int())}, true
	case v.CanFloat():
		return sortKey{number: v.Float()}, true
	default:
		return sortKey{text: fmt.Sprint(v)}, true
	}
}

// printTable prints rows that are all known.
func printTable(w io.Writer, columns []table.Column, rows [][]table.Cell, t terminal.Terminal, headers bool) error {
	return printRows(w, table.Fit(columns, rows, t), rows, headers)
}

func printRows(w io.Writer, layout *table.Layout, rows [][]table.Cell, headers bool) error {
	b := bufio.NewWriter(w)
	if headers {
		fmt.Fprint(b, layout.Header())
	}
	for _, row := range rows {
		fmt.Fprint(b, layout.Line(row))
	}
	return b.Flush()
}
