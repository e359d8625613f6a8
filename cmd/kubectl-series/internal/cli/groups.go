package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/group"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/table"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/timeline"
	"github.com/eventseries/eventseries/query"
)

// validateGroups checks the flags of a list with groups.
func (l *list) validateGroups() error {
	if l.groupBy == "" {
		return nil
	}
	if l.watch || l.watchOnly || l.watchEvents {
		return errors.New("--group-by: a watch has no groups")
	}
	if l.sorted {
		return errors.New("--sort-by: the order of groups is that of their states, the latest first")
	}
	if l.output != "" {
		if err := oneOf("--output with --group-by", l.output, "wide", "json", "yaml"); err != nil {
			return err
		}
	}
	return oneOf("--group-by", l.groupBy, group.All()...)
}

// printGroups prints one row for each group.
func (l *list) printGroups(ctx context.Context, reader *query.Reader, q query.Query, namespace string) error {
	items, err := collect(reader.List(ctx, q))
	if err != nil {
		return err
	}
	if len(items) == 0 && (l.output == "" || l.wide) {
		return l.nothing(ctx, q, namespace)
	}
	by := group.By(l.groupBy)
	var owner func(*query.Item) string
	if by == group.Owner {
		owner = l.ownerOf(ctx, namespace)
	}
	groups := group.Of(items, by, owner, l.limit)
	if l.output != "" && !l.wide {
		objects := make([]groupObject, len(groups))
		for i, g := range groups {
			objects[i] = newGroupObject(g)
		}
		return printGroups(l.Out, l.output, "GroupList", objects)
	}
	columns := []table.Column{
		{Name: "NAMESPACE", Min: 12, Middle: true},
		{Name: "STATE", Initial: true, LastResort: true},
		{Name: "LAST"},
		{Name: "SINCE", Omit: 3},
		{Name: "COUNT", Right: true, Omit: 5, LastResort: true},
		{Name: "RATE", Right: true, Omit: 2},
		{Name: "ONGOING", Right: true, Omit: 1},
		{Name: "TYPE", Initial: true, Omit: 6},
		{Name: "REASON", Min: 12},
		{Name: "OBJECT", Min: 24, Middle: true},
		{Name: "NOTE", Min: 16, Omit: 4},
	}
	rows := make([][]table.Cell, len(groups))
	for i, g := range groups {
		latest := g.Items[0]
		rows[i] = []table.Cell{
			{Text: cmp.Or(text.Clean(g.Namespace), text.None)}, {Text: g.State.String(), Color: timeline.StateColor(g.State)},
			{Text: l.when(g.Last, q.At)}, {Text: l.when(g.First, q.At)},
			{Text: text.AtLeast(fmt.Sprint(g.Occurrences), g.LowerBound)}, {Text: text.Rate(g.Rate())},
			{Text: fmt.Sprintf("%d/%d", g.Ongoing, g.Events)},
			{Text: cmp.Or(text.Clean(g.Type), text.None), Color: timeline.TypeColor(g.Type)},
			{Text: cmp.Or(text.Clean(g.Reason), text.None), Color: timeline.TypeColor(g.Type)},
			{Text: g.What()},
			{Text: cmp.Or(text.Clean(cmp.Or(latest.LastNote, latest.Note)), text.None)},
		}
	}
	if !l.namespace {
		columns = columns[1:]
		for i := range rows {
			rows[i] = rows[i][1:]
		}
	}
	l.rowCount = len(rows)
	for _, g := range groups {
		l.ongoingCount += g.Ongoing
	}
	if err := printTable(l.Out, columns, rows, l.terminal, !l.noHeaders); err != nil {
		return err
	}
	l.summarize()
	return nil
}

// groupObject is a [group.Group] as JSON.
type groupObject struct {
	Title             string     `json:"title"`
	State             string     `json:"state"`
	Type              string     `json:"type,omitempty"`
	Reason            string     `json:"reason,omitempty"`
	Kind              string     `json:"kind,omitempty"`
	Namespace         string     `json:"namespace,omitempty"`
	Owner             string     `json:"owner,omitempty"`
	Node              string     `json:"node,omitempty"`
	Objects           int        `json:"objects"`
	Series            int        `json:"series"`
	Ongoing           int        `json:"ongoing"`
	Occurrences       int64      `json:"occurrences"`
	LowerBound        bool       `json:"lowerBound,omitempty"`
	Rate              float64    `json:"rate"`
	FirstObservedTime *time.Time `json:"firstObservedTime,omitempty"`
	LastObservedTime  *time.Time `json:"lastObservedTime,omitempty"`
}

func newGroupObject(g *group.Group) groupObject {
	return groupObject{
		Title: g.Title(), State: g.State.String(), Type: g.Type, Reason: g.Reason, Kind: g.Kind, Namespace: g.Namespace, Owner: g.Owner, Node: g.Node,
		Objects: g.Objects, Series: g.Events, Ongoing: g.Ongoing, Occurrences: g.Occurrences, LowerBound: g.LowerBound, Rate: g.Rate(),
		FirstObservedTime: utc(g.First), LastObservedTime: utc(g.Last),
	}
}
