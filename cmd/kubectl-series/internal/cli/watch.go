package cli

import (
	"context"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/table"
	"github.com/eventseries/eventseries/query"
)

// runWatch prints the series in order, and then each change.
func (l *list) runWatch(ctx context.Context, reader *query.Reader, q query.Query, sort sorter) error {
	q.At = time.Time{} // the time of each change
	config, err := l.config()
	if err != nil {
		return err
	}
	if config.Timeout > 0 { // a watch is one request, however often it reconnects
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, config.Timeout)
		defer cancel()
	}
	next, stop := iter.Pull2(reader.Watch(ctx, q))
	defer stop()
	p := &watchPrinter{list: l}
	var initial []*query.Item
	for item, err := range sort(existing(next), 0) {
		if err != nil {
			return err
		}
		if !l.watchOnly {
			initial = append(initial, item)
		}
	}
	if l.limit > 0 && len(initial) > l.limit {
		initial = initial[:l.limit]
	}
	if err := p.begin(initial); err != nil {
		return err
	}
	if len(initial) == 0 && !l.watchOnly {
		l.suggest(ctx, q)
	}
	for {
		change, err, ok := next()
		if !ok || err != nil {
			return err
		}
		if err := p.print(change); err != nil {
			return err
		}
	}
}

// existing yields the series that exist when the first list of a watch is complete, each
// once. Before that, a series can change and vanish: if the server has forgotten the
// version of the list, the watch begins anew.
func existing(next func() (query.Change, error, bool)) iter.Seq2[*query.Item, error] {
	return func(yield func(*query.Item, error) bool) {
		items := make(map[types.NamespacedName]*query.Item)
		for {
			change, err, ok := next()
			if err != nil {
				yield(nil, err)
				return
			}
			if !ok || change.Type == query.Synced {
				break
			}
			name := types.NamespacedName{Namespace: change.Item.Namespace, Name: change.Item.Name}
			if items[name] = change.Item; change.Type == query.Left || change.Type == query.Deleted {
				delete(items, name)
			}
		}
		for _, name := range slices.SortedFunc(maps.Keys(items), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }) {
			if !yield(items[name], nil) {
				return
			}
		}
	}
}

// watchPrinter prints the changes of a watch.
type watchPrinter struct {
	*list
	layout *table.Layout
}

// begin prints the series that exist.
func (p *watchPrinter) begin(items []*query.Item) error {
	if p.printer == nil {
		columns := p.columns()
		if p.watchEvents {
			columns = append([]table.Column{{Name: "EVENT"}}, columns...)
		}
		var rows [][]table.Cell
		for _, item := range items {
			rows = append(rows, p.changeRow(query.Added, item))
		}
		p.layout = table.Fit(columns, append(rows, p.sample(columns)), p.terminal)
		return printRows(p.Out, p.layout, rows, !p.noHeaders)
	}
	for _, item := range items {
		if err := p.print(query.Change{Type: query.Added, Item: item}); err != nil {
			return err
		}
	}
	return nil
}

// sample returns a row with cells of usual widths, because rows to come determine the
// widths, too.
func (p *watchPrinter) sample(columns []table.Column) []table.Cell {
	return sampleOf(columns, map[string]int{
		"EVENT": 8, "NAMESPACE": 12, "STATE": 9, "LAST": 5, "RATE": 5, "TYPE": 7, "REASON": 18, "OBJECT": 30, "RELATED": 14, "NOTE": 60,
	})
}

func sampleOf(columns []table.Column, widths map[string]int) []table.Cell {
	var row []table.Cell
	for _, column := range columns {
		row = append(row, table.Cell{Text: strings.Repeat("x", widths[column.Name])})
	}
	return row
}

func (p *watchPrinter) changeRow(change query.ChangeType, item *query.Item) []table.Cell {
	if !p.watchEvents {
		return p.row(item)
	}
	return append([]table.Cell{{Text: watchEvent(change)}}, p.row(item)...)
}

func watchEvent(change query.ChangeType) string {
	switch change {
	case query.Added:
		return "ADDED"
	case query.Deleted:
		return "DELETED"
	default:
		return "MODIFIED"
	}
}

// print prints a change. A series that no longer matches is printed once more, so that a
// watch of ongoing series shows that one has finished.
func (p *watchPrinter) print(change query.Change) error {
	if change.Item == nil || change.Type == query.Deleted && !p.watchEvents {
		return nil
	}
	switch {
	case p.printer == nil:
		_, err := io.WriteString(p.Out, p.layout.Line(p.changeRow(change.Type, change.Item)))
		return err
	case p.watchEvents:
		return p.printer.PrintChange(p.Out, watchEvent(change.Type), change.Item)
	default:
		return p.printer.PrintItem(p.Out, change.Item)
	}
}
