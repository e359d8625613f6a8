package cli

import (
	"cmp"
	"strconv"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/table"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/timeline"
	"github.com/eventseries/eventseries/query"
)

// columns returns the columns of the table.
func (l *list) columns() []table.Column {
	var columns []table.Column
	if l.namespace {
		columns = append(columns, table.Column{Name: "NAMESPACE", Min: 12, Middle: true})
	}
	columns = append(columns,
		table.Column{Name: "STATE", Initial: true, LastResort: true},
		table.Column{Name: "LAST"},
		table.Column{Name: "COUNT", Right: true, Omit: 4, LastResort: true},
		table.Column{Name: "RATE", Right: true, Omit: 2},
		table.Column{Name: "TYPE", Initial: true, Omit: 5},
		table.Column{Name: "REASON", Min: 12},
		table.Column{Name: "OBJECT", Min: 16, Middle: true},
		table.Column{Name: "RELATED", Min: 12, Omit: 1, Middle: true},
	)
	if l.wide {
		for _, name := range []string{"FIRST", "CONTROLLER", "NODE", "INSTANCE", "ACTION", "EVENT"} {
			columns = append(columns, table.Column{Name: name})
		}
	}
	return append(columns, table.Column{Name: "NOTE", Min: 16, Omit: 3})
}

// row returns the cells of a series.
func (l *list) row(item *query.Item) []table.Cell {
	row := make([]table.Cell, 0, 10) // those of a table that is not wide
	cell := func(s string) { row = append(row, table.Cell{Text: cmp.Or(s, text.None)}) }
	e := item.Event
	if l.namespace {
		cell(text.Clean(item.Namespace))
	}
	cell(item.State.String())
	row[len(row)-1].Color = timeline.StateColor(item.State)
	cell(l.when(item.Last, item.At))
	cell(text.AtLeast(strconv.Itoa(int(item.Count)), item.LowerBound()))
	cell(text.Rate(item.Rate()))
	cell(text.Clean(e.Type))
	row[len(row)-1].Color = timeline.TypeColor(e.Type)
	cell(text.Clean(e.Reason))
	row[len(row)-1].Color = timeline.TypeColor(e.Type) // a narrow terminal has no column for the type
	cell(text.Object(item.Key.Regarding, item.Namespace))
	cell(text.Object(item.Key.Related, item.Namespace))
	if l.wide {
		cell(l.when(item.First, item.At))
		cell(text.Clean(item.Controller()))
		cell(text.Clean(item.Node()))
		cell(text.Clean(item.Key.ReportingInstance))
		cell(text.Clean(e.Action))
		cell(text.Clean(item.Name))
	}
	cell(text.Clean(cmp.Or(item.LastNote, e.Note)))
	return row
}
