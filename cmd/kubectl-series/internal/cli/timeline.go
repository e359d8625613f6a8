package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/output"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/terminal"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/timeline"
	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
)

type timelineCommand struct {
	*environment
	filters filters
	owners  bool
	uid     string
	earlier bool
	output  string
	file    string
}

// timelineFormats are the formats of timeline that are pictures.
var timelineFormats = []string{"text", "html", "svg"}

func newTimeline(e *environment) *cobra.Command {
	t := &timelineCommand{environment: e}
	c := &cobra.Command{
		Use:   "timeline KIND/NAME",
		Short: "Show the life of an object in order of time",
		Long: `Show the life of an object in order of time: the series about it, and those in
which it is the related object. Each series is a bar from its first to its last
occurrence, open-ended if it is ongoing.

If earlier objects had the same name, such as the Pods of a StatefulSet, show the
latest one. Events tell the objects apart by their UID. With --earlier, show all.

With --owners, also show the series of the owners of the object and of its
dependents. This needs the permissions to get the object and its owners, and to
list the kinds of dependents.`,
		Example: `  # The life of a Pod
  kubectl series timeline pod/checkout-0

  # The same as a page to attach to an incident
  kubectl series timeline pod/checkout-0 -o html --file checkout-0.html

  # A Deployment with its ReplicaSets and Pods in the last two hours
  kubectl series timeline deployment/web --owners --since 2h`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return fmt.Errorf("%d arguments: want one object: KIND/NAME, such as pod/checkout-0", len(args))
			}
			return nil
		},
		ValidArgsFunction: completeObjects(e),
		RunE: func(c *cobra.Command, args []string) error {
			return t.run(c.Context(), args)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVarP(&t.filters.allNamespaces, "all-namespaces", "A", false, "Look the object up in all namespaces")
	flags.BoolVar(&t.owners, "owners", false, "Include the owners of the object and its dependents")
	flags.BoolVar(&t.earlier, "earlier", false, "Include earlier objects of the same name")
	flags.StringVar(&t.uid, "uid", "", "Select the object with this UID")
	flags.StringVar(&t.filters.since, "since", "", "Select series that occurred since then: how long ago, such as 1h, or a time (RFC 3339)")
	flags.StringVar(&t.filters.until, "until", "", "Select series that began until then: how long ago, such as 1h, or a time (RFC 3339)")
	flags.StringSliceVar(&t.filters.types, "type", nil, "Select series with one of these types: Normal, Warning")
	flags.StringVarP(&t.output, "output", "o", "", "Output format: "+strings.Join(append(timelineFormats, output.Formats()...), ", "))
	flags.StringVar(&t.file, "file", "", "Write to this file instead of the standard output")
	return c
}

func (t *timelineCommand) run(ctx context.Context, args []string) (err error) {
	targets, err := parseTargets(args)
	if err != nil {
		return err
	}
	if len(targets) != 1 {
		return fmt.Errorf("%q: want one object: KIND/NAME, such as pod/checkout-0", args)
	}
	var printer *output.Printer
	if t.output != "" && !slices.Contains(timelineFormats, t.output) {
		if printer, err = output.New(t.output, output.Options{Others: timelineFormats}); err != nil {
			return err
		}
	}
	at := now()
	q, namespace, err := t.filters.query(ctx, t.environment, targets, at)
	if err != nil {
		return err
	}
	if q.Objects[0].Name == "" {
		return fmt.Errorf("%q: want one object: KIND/NAME, such as pod/checkout-0", args)
	}
	if q.Objects[0].Namespace == "" && !q.Objects[0].ClusterScoped { // of all namespaces
		found, err := t.candidates(ctx, q.Objects[0], nil, at)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return t.nothing(ctx, q.Objects, "", at)
		}
		object, err := t.choose(argument(q.Objects[0]), found, at)
		if err != nil {
			return err
		}
		q.Objects[0], namespace = *object, object.Namespace
	}
	objects := q.Objects
	objects[0].UID = types.UID(t.uid)
	subject := &objects[0]
	var remarks []string
	if t.owners {
		var missing []error
		if objects, missing, err = t.follow(ctx, *subject); err != nil {
			return err
		}
		subject = &objects[0]
		for _, err := range missing {
			t.warn(err)
			remarks = append(remarks, "Owners and dependents are incomplete: "+message(err))
		}
	}
	q.Objects = slices.Clone(objects)
	for i := range q.Objects {
		q.Objects[i].UID = "" // not all recorders write it
	}

	reader, progress, err := t.reader(query.Options{OnWarning: func(err error) {
		t.warn(err)
		remarks = append(remarks, "Events are missing: "+message(err))
	}})
	if err != nil {
		return err
	}
	defer progress.clear()
	var items []*query.Item
	for item, err := range reader.List(ctx, q) {
		if err != nil {
			return err
		}
		items = append(items, item)
	}
	if subject.UID == "" && !t.earlier {
		var earlier int
		if subject.UID, earlier = latest(items, *subject); earlier > 0 {
			remarks = append(remarks, fmt.Sprintf("%s had this name before. --earlier includes the Events.", text.Plural(earlier, "object")))
		}
	}
	items = slices.DeleteFunc(items, func(item *query.Item) bool {
		return !slices.ContainsFunc(objects, func(o query.Object) bool { return concerns(item, o) })
	})
	if len(items) == 0 && (t.output == "" || t.output == "text") {
		return t.nothing(ctx, q.Objects[:1], namespace, at)
	}

	out, closeFile, err := t.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	if subject.ClusterScoped {
		namespace = ""
	}
	drawn := timeline.New(timeline.Options{
		Kind: subject.Kind, Namespace: namespace, Name: subject.Name, Items: items, Now: at, Remarks: remarks,
	})
	switch t.output {
	case "", "text":
		return drawn.WriteText(out, terminal.Of(out, t.colors))
	case "html":
		return drawn.WriteHTML(out)
	case "svg":
		return drawn.WriteSVG(out)
	default:
		return printer.PrintList(out, func(yield func(*query.Item, error) bool) {
			for i := range drawn.Rows {
				if !yield(drawn.Rows[i].Item, nil) {
					return
				}
			}
		})
	}
}

// open opens the output.
func (t *timelineCommand) open() (w io.Writer, closeFile func() error, err error) {
	if t.file == "" || t.file == "-" {
		return t.Out, func() error { return nil }, nil
	}
	f, err := os.Create(t.file)
	if err != nil {
		return nil, nil, fmt.Errorf("--file: %w", err)
	}
	return f, f.Close, nil
}

// follow returns an object with its owners and dependents, and what is missing.
func (t *timelineCommand) follow(ctx context.Context, object query.Object) (objects []query.Object, missing []error, err error) {
	config, err := t.config()
	if err != nil {
		return nil, nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	mapper, err := t.flags.ToRESTMapper()
	if err != nil {
		return nil, nil, err
	}
	owners := &query.Owners{Metadata: client, Mapper: mapper, PageSize: t.pageSize()}
	objects, missing = owners.Follow(ctx, object)
	return objects, missing, nil
}

// concerns reports whether an object is the regarding or the related object of an item. The
// object of a reference without a UID can be any object of its name.
func concerns(item *query.Item, o query.Object) bool {
	uid := o.UID
	o.UID = ""
	for i, role := range []query.Role{query.Regarding, query.Related} {
		ref := references(item)[i]
		if item.Concerns(o, role) && (uid == "" || uid == ref.UID || !identifies(ref)) {
			return true
		}
	}
	return false
}

func references(item *query.Item) []series.Reference {
	return []series.Reference{item.Key.Regarding, item.Key.Related}
}

// identifies reports whether the UID of a reference is one. The kubelet writes the name of its
// Node instead.
func identifies(ref series.Reference) bool { return ref.UID != "" && string(ref.UID) != ref.Name }

// latest returns the UID of the object that items mention last for the first time, and the
// number of earlier objects.
func latest(items []*query.Item, o query.Object) (uid types.UID, earlier int) {
	began := make(map[types.UID]time.Time)
	for _, item := range items {
		for _, ref := range references(item) {
			if first, ok := began[ref.UID]; o.Matches(ref) && identifies(ref) && (!ok || item.First.Before(first)) {
				began[ref.UID] = item.First
			}
		}
	}
	for id, first := range began {
		if c := first.Compare(began[uid]); uid == "" || c > 0 || c == 0 && id > uid {
			uid = id
		}
	}
	return uid, max(len(began)-1, 0)
}
