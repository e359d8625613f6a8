package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/group"
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
	follow  bool
	uid     string
	earlier bool
	groupBy string
	output  string
	file    string
}

// timelineFormats are the formats of timeline that are pictures.
var timelineFormats = []string{"text", "html", "svg"}

// Limits of a timeline.
const (
	maxSeparate = 30 // series that are not grouped unless the caller wants it
	maxGroups   = 25 // bars of a timeline with groups
)

func newTimeline(e *environment) *cobra.Command {
	t := &timelineCommand{environment: e}
	c := &cobra.Command{
		Use:   "timeline (KIND/NAME | NAME)",
		Short: "Show the life of an object in order of time",
		Long: `Show the life of an object in order of time: the series about it and about its
dependents, such as the Pods of a Deployment, also those that have been deleted.
Each series is a bar from its first to its last occurrence, open-ended if it is
ongoing. A name without a kind is looked up in the namespace of -n, otherwise in
all, as far as you may list them.

If earlier objects had the same name, such as the Pods of a StatefulSet, show the
latest one. Events tell the objects apart by their UID. With --earlier, show all.

With --follow, also show the objects that Events connect with it, and so on, the
owners of the object, and the Node and the PersistentVolumeClaims of a Pod. The cause is often there.

With --owners, also show the series of the owners of the object. This needs the
permissions to get the object and its owners. With --related, also show those in
which the object is the related one.

More than 30 series are grouped by their reason. See --group-by.`,
		Example: `  # The life of a Pod
  kubectl series timeline pod/checkout-0

  # The Pod and what is connected with it
  kubectl series timeline pod/checkout-0 --follow

  # The same as a page to attach to an incident
  kubectl series timeline pod/checkout-0 -o html --file checkout-0.html

  # A Deployment with its ReplicaSets and Pods in the last two hours
  kubectl series timeline deployment/web --since 2h`,
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
	flags.BoolVar(&t.follow, "follow", false, "Include the objects that are connected with the object")
	flags.BoolVar(&t.owners, "owners", false, "Include the owners of the object")
	flags.BoolVar(&t.earlier, "earlier", false, "Include earlier objects of the same name")
	flags.StringVar(&t.uid, "uid", "", "Select the object with this UID")
	t.filters.addCommon(flags)
	flags.StringVar(&t.groupBy, "group-by", "", "One bar for series with the same reason and: "+strings.Join(groupings(), ", "))
	flags.StringVarP(&t.output, "output", "o", "", "Output format: "+strings.Join(append(timelineFormats, output.Formats()...), ", "))
	flags.StringVar(&t.file, "file", "", "Write to this file instead of the standard output")
	return c
}

func groupings() []string { return append(group.All(), "none") }

func (t *timelineCommand) run(ctx context.Context, args []string) (err error) {
	var printer *output.Printer
	if t.output != "" && !slices.Contains(timelineFormats, t.output) {
		if printer, err = output.New(t.output, output.Options{Others: timelineFormats}); err != nil {
			return err
		}
	}
	if t.groupBy != "" {
		if err := oneOf("--group-by", t.groupBy, groupings()...); err != nil {
			return err
		}
	}
	at := t.Now()
	q, namespace, err := t.subject(ctx, args, at)
	if err != nil {
		return err
	}
	v := &view{timelineCommand: t, subject: q.Objects[0]}
	v.subject.UID = types.UID(t.uid)
	if err := v.read(ctx, q); err != nil {
		return err
	}
	isText := t.output == "" || t.output == "text"
	if len(v.items) == 0 && isText {
		return t.nothing(ctx, q, namespace)
	}

	out, closeFile, err := t.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	if printer != nil {
		return printer.PrintList(out, query.Sort(all(v.items), query.ByFirst, 0))
	}
	drawn := timeline.New(timeline.Options{
		Kind: v.subject.Kind, Namespace: v.subject.Namespace, Name: v.subject.Name,
		Items: v.items, Groups: v.groups(ctx), Now: at, Dependents: v.sum, Paths: v.paths, Remarks: v.remarks, Next: v.next(ctx),
	})
	switch t.output {
	case "html":
		return drawn.WriteHTML(out)
	case "svg":
		return drawn.WriteSVG(out)
	default:
		return drawn.WriteText(out, terminal.Of(out, t.colors))
	}
}

// subject returns the query for the object of the arguments, and the namespace to which they are
// limited.
func (t *timelineCommand) subject(ctx context.Context, args []string, at time.Time) (q query.Query, namespace string, err error) {
	targets, err := parseTargets(args)
	if err != nil {
		return q, "", err
	}
	want := fmt.Errorf("%q: want one object: KIND/NAME, such as pod/checkout-0", strings.Join(args, " "))
	if len(targets) != 1 {
		return q, "", want
	}
	if q, namespace, err = t.filters.query(ctx, t.environment, targets, at); err != nil {
		return q, "", err
	}
	object := &q.Objects[0]
	switch {
	case object.Name == "":
		return q, "", want
	case object.Namespace != "" || object.ClusterScoped:
		return q, namespace, nil
	}
	found, err := t.candidates(ctx, *object, nil, query.RegardingOrRelated, at)
	if err != nil || len(found) == 0 {
		return q, "", err
	}
	chosen, err := t.choose(argument(*object), found, at)
	if err != nil {
		return q, "", err
	}
	*object = chosen.object
	if chosen.related {
		q.Role = query.RegardingOrRelated
	}
	return q, object.Namespace, nil
}

// view is what a timeline shows.
type view struct {
	*timelineCommand
	subject query.Object
	owned   []query.Object // the subject with the UIDs that it has now, and its owners
	items   []*query.Item
	sum     string   // of the Warnings about dependents
	paths   []string // how the objects are connected
	remarks []string
}

// problem warns of what a timeline does not show. A page says it, too.
func (v *view) problem(what string, err error) {
	v.warn(what, err)
	if v.output == "html" || v.output == "svg" {
		v.remarks = append(v.remarks, strings.ToUpper(what[:1])+what[1:]+": "+message(err))
	}
}

// read reads the series.
func (v *view) read(ctx context.Context, q query.Query) error {
	var missing []error
	v.owned, missing = v.chain(ctx, v.subject)
	objects := []query.Object{v.subject}
	if v.owners {
		for _, err := range missing {
			v.problem("owners are incomplete", err)
		}
		objects = append(objects, slices.DeleteFunc(slices.Clone(v.owned), v.isSubject)...)
	}
	reader, progress, err := v.reader(query.Options{OnWarning: func(err error) { v.problem(leftOut(err), err) }})
	if err != nil {
		return err
	}
	defer progress.clear()
	if v.follow {
		connected, paths, err := v.connected(ctx, reader, objects)
		if err != nil {
			return err
		}
		objects, v.paths = connected, paths
	}
	q.Objects = slices.Clone(objects)
	for i := range q.Objects {
		q.Objects[i].UID = "" // not all recorders write it
	}
	if v.items, err = collect(reader.List(ctx, q)); err != nil {
		return err
	}
	objects = append(v.current(), slices.DeleteFunc(objects, v.isSubject)...)
	isIn := func(item *query.Item) bool {
		return slices.ContainsFunc(objects, func(o query.Object) bool { return concerns(item, o, q.Role) })
	}
	v.items = slices.DeleteFunc(v.items, func(item *query.Item) bool { return !isIn(item) })
	if hasDependents(v.subject) {
		var dependents []*query.Item
		if dependents, v.sum, err = v.dependents(ctx, reader, q); err != nil {
			return err
		}
		v.items = append(v.items, slices.DeleteFunc(dependents, isIn)...)
	}
	return nil
}

// isSubject reports whether an object has the name of the subject.
func (v *view) isSubject(o query.Object) bool { return bare(o) == bare(v.subject) }

// current returns what selects the subject with the UIDs of one object: those of the caller, those that it has
// now (two for a mirror Pod), or that of the latest Events. It remarks on others.
func (v *view) current() []query.Object {
	if v.subject.UID != "" || v.earlier {
		return []query.Object{v.subject}
	}
	began := uids(v.items, v.subject)
	var live []query.Object
	for _, o := range v.owned {
		if _, mentioned := began[o.UID]; v.isSubject(o) && mentioned {
			live = append(live, o)
		}
	}
	if len(live) == 0 {
		latest := v.subject
		for uid, first := range began {
			if c := first.Compare(began[latest.UID]); latest.UID == "" || c > 0 || c == 0 && uid > latest.UID {
				latest.UID = uid
			}
		}
		live = append(live, latest)
	}
	v.subject.UID = live[0].UID
	if earlier := len(began) - len(live); earlier > 0 && v.subject.UID != "" {
		v.remarks = append(v.remarks, fmt.Sprintf("%s had this name before. --earlier includes the Events.", text.Plural(earlier, "object")))
	}
	return live
}

// groups returns the groups to draw, or nil for a bar for each series.
func (v *view) groups(ctx context.Context) []*group.Group {
	by := group.By(v.groupBy)
	switch {
	case by == "" && len(v.items) > maxSeparate:
		by = group.Reason
		v.remarks = append(v.remarks, fmt.Sprintf("%d series are grouped by reason. --group-by none shows a bar for each.", len(v.items)))
	case by == "" || by == "none" || len(v.items) == 0:
		return nil
	}
	var owner func(*query.Item) string
	if by == group.Owner {
		owner = v.ownerOf(ctx, v.subject.Namespace)
	}
	return group.Of(v.items, by, owner, maxGroups)
}

func collect(items iter.Seq2[*query.Item, error]) (all []*query.Item, err error) {
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

func all(items []*query.Item) iter.Seq2[*query.Item, error] {
	return func(yield func(*query.Item, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
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

// concerns reports whether an object has a role in an item. The object of a reference without a UID
// can be any object of its name.
func concerns(item *query.Item, o query.Object, role query.Role) bool {
	uid := o.UID
	o.UID = ""
	for i, one := range []query.Role{query.Regarding, query.Related} {
		ref := references(item)[i]
		if (role == query.RegardingOrRelated || role == one) && item.Concerns(o, one) && (uid == "" || uid == ref.UID || !identifies(ref)) {
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

// uids returns the UIDs of the objects that items mention under a name, and when they do so for the first time.
func uids(items []*query.Item, o query.Object) map[types.UID]time.Time {
	began := make(map[types.UID]time.Time)
	for _, item := range items {
		for _, ref := range references(item) {
			if first, ok := began[ref.UID]; o.Matches(ref) && identifies(ref) && (!ok || item.First.Before(first)) {
				began[ref.UID] = item.First
			}
		}
	}
	return began
}
