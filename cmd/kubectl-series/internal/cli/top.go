package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/output"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/table"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/terminal"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/query"
)

type top struct {
	*environment
	filters
	sortBy    string
	limit     int
	output    string
	noHeaders bool
}

// topOrders are the values of --sort-by. The largest value comes first.
var topOrders = []struct {
	name  string
	value func(g *query.Group) float64
}{
	{"occurrences", func(g *query.Group) float64 { return float64(g.Occurrences) }},
	{"rate", (*query.Group).Rate},
	{"events", func(g *query.Group) float64 { return float64(g.Events) }},
	{"ongoing", func(g *query.Group) float64 { return float64(g.Ongoing) }},
	{"loops", (*query.Group).LoopShare},
	{"last", func(g *query.Group) float64 { return float64(g.Last.UnixMicro()) }},
}

func newTop(e *environment) *cobra.Command {
	t := &top{environment: e}
	c := &cobra.Command{
		Use:   "top [controllers | reasons | namespaces | objects | actions | types | nodes]...",
		Short: "Show the noisiest controllers, reasons, namespaces, or objects",
		Long: `Show the noisiest controllers, reasons, namespaces, or objects: their occurrences,
the rate from the first to the last one, the number of Events and of ongoing
series, and the share of the occurrences that belong to a loop, which is an Event
with more than one.

Several dimensions combine: "top controllers reasons" shows the reasons of each
controller.`,
		Example: `  # The noisiest controllers of all namespaces in the last hour
  kubectl series top -A --since 1h

  # What the kubelets report most
  kubectl series top reasons -A --controller kubelet

  # The noisiest objects of a namespace, by rate
  kubectl series top objects -n shop --sort-by rate`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			names := slices.DeleteFunc(dimensionNames(), func(s string) bool { return slices.Contains(args, s) })
			return withPrefix(names, prefix), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			return t.run(c.Context(), args)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	t.addTo(flags)
	t.addFor(flags)
	flags.StringVar(&t.sortBy, "sort-by", "occurrences", "Order: "+strings.Join(topOrderNames(), ", "))
	flags.IntVar(&t.limit, "limit", 10, "Show the first rows only. Pass 0 for all.")
	flags.StringVarP(&t.output, "output", "o", "", "Output format: json, yaml")
	flags.BoolVar(&t.noHeaders, "no-headers", false, "Print no headers")
	return c
}

func topOrderNames() []string {
	var names []string
	for _, order := range topOrders {
		names = append(names, order.name)
	}
	return names
}

func dimensionNames() []string {
	all := names(query.Dimensions())
	for i := range all {
		all[i] += "s"
	}
	return all
}

func (t *top) run(ctx context.Context, by []string) error {
	if len(by) == 0 {
		by = []string{string(query.PerController)}
	}
	var dimensions []query.Dimension
	for _, name := range by {
		d := query.Dimension(strings.TrimSuffix(strings.ToLower(name), "s"))
		if !slices.Contains(query.Dimensions(), d) {
			return fmt.Errorf("unknown dimension %q: want one of %s", name, strings.Join(dimensionNames(), ", "))
		}
		if !slices.Contains(dimensions, d) {
			dimensions = append(dimensions, d)
		}
	}
	order := slices.Index(topOrderNames(), strings.ToLower(t.sortBy)) // in any case, as the columns are
	if order < 0 {
		return fmt.Errorf("--sort-by %q: want one of %s", t.sortBy, strings.Join(topOrderNames(), ", "))
	}
	if t.limit < 0 {
		return fmt.Errorf("--limit %d: want 0 or more", t.limit)
	}
	if t.output != "" {
		if err := oneOf("--output", t.output, "json", "yaml"); err != nil {
			return err
		}
	}
	q, namespace, err := t.query(ctx, t.environment, nil, t.Now())
	if err != nil {
		return err
	}
	reader, progress, err := t.reader(query.Options{})
	if err != nil {
		return err
	}
	defer progress.clear()
	groups, err := query.Top(reader.List(ctx, q), dimensions...)
	if err != nil {
		return err
	}
	value := topOrders[order].value
	slices.SortStableFunc(groups, func(a, b query.Group) int { return cmp.Compare(value(&b), value(&a)) })
	if t.limit > 0 && len(groups) > t.limit {
		omitted := len(groups) - t.limit
		groups = groups[:t.limit]
		defer func() { fmt.Fprintf(t.ErrOut, "and %s more (--limit 0 shows all)\n", text.Count(int64(omitted))) }()
	}
	if t.output != "" {
		return t.printObjects(groups, dimensions)
	}
	if len(groups) == 0 {
		return t.nothing(ctx, q, namespace)
	}
	return t.printTable(groups, dimensions, q.At)
}

func (t *top) printTable(groups []query.Group, by []query.Dimension, at time.Time) error {
	var columns []table.Column
	for _, d := range by {
		columns = append(columns, table.Column{Name: strings.ToUpper(string(d)), Min: 16, Middle: d == query.PerObject || d == query.PerNamespace})
	}
	columns = append(columns,
		table.Column{Name: "OCCURRENCES", Right: true},
		table.Column{Name: "RATE", Right: true, Omit: 3},
		table.Column{Name: "EVENTS", Right: true, Omit: 2},
		table.Column{Name: "ONGOING", Right: true, Omit: 1, LastResort: true},
		table.Column{Name: "LOOPS", Right: true, Omit: 1},
		table.Column{Name: "LAST", Right: true},
	)
	rows := make([][]table.Cell, len(groups))
	for i := range groups {
		g := &groups[i]
		for _, value := range g.Values {
			rows[i] = append(rows[i], table.Cell{Text: cmp.Or(text.Clean(value), text.None)})
		}
		ongoing := table.Cell{Text: fmt.Sprint(g.Ongoing)}
		if g.Ongoing > 0 {
			ongoing.Color = terminal.Yellow
		}
		rows[i] = append(rows[i],
			table.Cell{Text: text.AtLeast(fmt.Sprint(g.Occurrences), g.LowerBound)}, table.Cell{Text: text.Rate(g.Rate())}, table.Cell{Text: fmt.Sprint(g.Events)},
			ongoing, table.Cell{Text: fmt.Sprintf("%.0f%%", 100*g.LoopShare())}, table.Cell{Text: t.when(g.Last, at)})
	}
	return printTable(t.Out, columns, rows, terminal.Of(t.Out, t.colors), !t.noHeaders)
}

// topGroup is a [query.Group] as JSON.
type topGroup struct {
	Values            map[query.Dimension]string `json:"values"`
	Occurrences       int64                      `json:"occurrences"`
	LowerBound        bool                       `json:"lowerBound,omitempty"` // there can have been more
	Rate              float64                    `json:"rate"`
	Events            int                        `json:"events"`
	Ongoing           int                        `json:"ongoing"`
	LoopShare         float64                    `json:"loopShare"`
	FirstObservedTime *time.Time                 `json:"firstObservedTime,omitempty"`
	LastObservedTime  *time.Time                 `json:"lastObservedTime,omitempty"`
}

func (t *top) printObjects(groups []query.Group, by []query.Dimension) error {
	items := make([]topGroup, len(groups))
	for i := range groups {
		g := &groups[i]
		items[i] = topGroup{
			Values: make(map[query.Dimension]string), Occurrences: g.Occurrences, LowerBound: g.LowerBound, Rate: g.Rate(), Events: g.Events,
			Ongoing: g.Ongoing, LoopShare: g.LoopShare(),
			FirstObservedTime: utc(g.First), LastObservedTime: utc(g.Last),
		}
		for j, d := range by {
			items[i].Values[d] = g.Values[j]
		}
	}
	return printGroups(t.Out, t.output, "Top", items)
}

// printGroups prints a list of a kind that the server does not have, as JSON or YAML.
func printGroups(w io.Writer, format, kind string, items any) error {
	list := map[string]any{"apiVersion": output.GroupVersion.String(), "kind": kind, "items": items}
	data, err := output.JSON(list, "", "    ")
	if format == "yaml" {
		data, err = output.YAML(list)
	} else {
		data = append(data, '\n')
	}
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
