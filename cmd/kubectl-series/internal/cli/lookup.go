package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/table"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/terminal"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
)

// candidate is an object that Events mention.
type candidate struct {
	object          query.Object
	related         bool // it is only the related object
	series, ongoing int
	last            time.Time
}

// named returns the object with a name, of any kind and, unless the caller chose a namespace, in
// any namespace that the user may list. It returns nil if the name is a kind, or if no Event mentions
// such an object. If several objects have the name, it prints them, and returns an error.
func (e *environment) named(ctx context.Context, name string, namespaces []string, at time.Time) (*candidate, error) {
	if _, err := e.mapping(name); err == nil {
		return nil, nil
	}
	t := newTarget("", name)
	found, err := e.candidates(ctx, query.Object{Name: t.name, Container: t.container}, namespaces, query.RegardingOrRelated, at)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return e.choose(name, found, at)
}

// explain returns the error for the first argument, which is no kind: how to name the object that Events
// mention under this name.
func (e *environment) explain(ctx context.Context, unknown *unknownKindError, first target, at time.Time) error {
	if first.name != "" && !first.listed { // KIND/NAME
		return unknown
	}
	name := newTarget("", unknown.name).name
	for _, name := range []string{name, strings.ToLower(name)} {
		if found, err := e.candidates(ctx, query.Object{Name: name}, nil, query.RegardingOrRelated, at); err == nil && len(found) > 0 {
			return fmt.Errorf("%q is no kind (kubectl api-resources): pass KIND/NAME for each object, such as %q", unknown.name, arguments(found[0].object))
		}
	}
	return fmt.Errorf("%q is neither a kind (kubectl api-resources) nor the name of an object that Events mention", unknown.name)
}

// choose returns the only candidate. If there are several, it prints them, and returns an error.
func (e *environment) choose(what string, found []candidate, at time.Time) (*candidate, error) {
	if len(found) == 1 {
		return &found[0], nil
	}
	columns := []table.Column{
		{Name: "OBJECT", Min: 18, Middle: true}, {Name: "NAMESPACE", Min: 10, Middle: true}, {Name: "SERIES", Right: true, Omit: 1}, {Name: "ONGOING", Right: true}, {Name: "LAST", Right: true},
	}
	var rows [][]table.Cell
	for _, c := range found {
		rows = append(rows, []table.Cell{
			{Text: argument(c.object)}, {Text: cmp.Or(text.Clean(c.object.Namespace), text.None)},
			{Text: fmt.Sprint(c.series)}, {Text: fmt.Sprint(c.ongoing)}, {Text: e.when(c.last, at)},
		})
	}
	if err := printTable(e.Out, columns, rows, terminal.Of(e.Out, e.colors), true); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s is the name of %d objects: choose one, such as %q", what, len(found), arguments(found[0].object))
}

// argument returns an object as an argument of the commands: KIND/NAME, or KIND/NAME{CONTAINER}. Some Events
// tell no kind.
func argument(o query.Object) string {
	s := o.Name
	if o.Kind != "" {
		s = strings.ToLower(o.Kind) + "/" + s
	}
	if o.Container != "" {
		s += "{" + o.Container + "}"
	}
	return quote(s)
}

// quote returns s as one word of a shell: users paste the commands that are shown, and
// Events can name objects as they like.
func quote(s string) string {
	s = text.Clean(s)
	isUnsafe := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._/:@=-{}", r)
	}
	if s != "" && !strings.ContainsFunc(s, isUnsafe) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// arguments returns [argument] with the flag for the namespace.
func arguments(o query.Object) string {
	if o.Namespace == "" {
		return argument(o)
	}
	return argument(o) + " -n " + quote(o.Namespace)
}

// candidates returns the objects that match o and that Events are about, the one with the latest
// occurrence first. If there are none, and the role permits, it returns those that Events mention as
// related ones, which takes longer. If the user may not list the Events of all namespaces, it searches those that the
// user may list.
func (e *environment) candidates(ctx context.Context, o query.Object, namespaces []string, role query.Role, at time.Time) ([]candidate, error) {
	reader, progress, err := e.reader(query.Options{OnWarning: func(error) {}})
	if err != nil {
		return nil, err
	}
	defer progress.clear()
	q := query.Query{Namespaces: namespaces, At: at, FieldSelector: fields.OneTermEqualSelector("regarding.name", o.Name).String()}
	found, err := e.mentioned(ctx, reader, q, o, query.Regarding)
	if denied := (*query.PermissionError)(nil); errors.As(err, &denied) && len(namespaces) == 0 {
		q.Namespaces = e.namespaces(ctx)
		if found, err = e.mentioned(ctx, reader, q, o, query.Regarding); err != nil {
			return nil, denied // which says what is missing
		}
	}
	if err == nil && len(found) == 0 && role != query.Regarding {
		q.FieldSelector = ""
		found, err = e.mentioned(ctx, reader, q, o, query.Related)
	}
	return found, err
}

// mentioned returns the objects that match o and have a role in the Events of a query.
func (e *environment) mentioned(ctx context.Context, reader *query.Reader, q query.Query, o query.Object, role query.Role) ([]candidate, error) {
	type id struct{ kind, namespace string }
	byID := make(map[id]*candidate)
	for item, err := range reader.List(ctx, q) {
		if err != nil {
			return nil, err
		}
		if !item.Concerns(o, role) {
			continue
		}
		ref := item.Key.Regarding
		if role == query.Related {
			ref = item.Key.Related
		}
		object := e.objectOf(ref, item.Namespace)
		object.Container = o.Container
		key := id{object.Kind, object.Namespace}
		c := byID[key]
		if c == nil {
			c = &candidate{object: object, related: role == query.Related}
			byID[key] = c
		}
		c.series++
		if item.State == series.Ongoing {
			c.ongoing++
		}
		if item.Last.After(c.last) {
			c.last = item.Last
		}
	}
	var found []candidate
	for _, c := range byID {
		found = append(found, *c)
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.object.Kind, b.object.Kind), cmp.Compare(a.object.Namespace, b.object.Namespace))
	})
	return found, nil
}

// objectOf returns what selects the object of a reference of an Event in a namespace. A
// reference without a namespace can be to an object that has one, as far as the server tells.
func (e *environment) objectOf(ref series.Reference, namespace string) query.Object {
	o := query.Object{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	if o.Namespace != "" {
		return o
	}
	if mapping, err := e.mapping(ref.Kind); err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		o.Namespace = namespace
	}
	o.ClusterScoped = o.Namespace == ""
	return o
}

// namespaces returns the namespaces that the user may know: all of them, or that of the context and
// those of cluster-scoped objects.
func (e *environment) namespaces(ctx context.Context) []string {
	known := []string{metav1.NamespaceDefault, metav1.NamespaceSystem}
	if current, err := e.namespace(); err == nil {
		known = append(known, current)
	}
	client, err := e.core()
	if err != nil {
		return known
	}
	list, err := client.Namespaces().List(ctx, metav1.ListOptions{Limit: query.DefaultPageSize})
	if err != nil {
		return known
	}
	known = nil
	for i := range list.Items {
		known = append(known, list.Items[i].Name)
	}
	return known
}

// core returns a client for core/v1.
func (e *environment) core() (*typedcorev1.CoreV1Client, error) {
	config, err := e.config()
	if err != nil {
		return nil, err
	}
	return typedcorev1.NewForConfig(config)
}

// nothing says that no Event matches a query: what was searched where, and where there are some. It
// returns an error if the namespace does not exist, or if the Events about an object are in another one.
func (e *environment) nothing(ctx context.Context, q query.Query, namespace string) error {
	objects := q.Objects
	what := "No events found"
	if len(objects) == 1 && objects[0].Name != "" {
		what += " about " + text.Object(series.Reference{Kind: objects[0].Kind, Name: objects[0].Name, FieldPath: objects[0].Container}, "")
	}
	if flags := selecting(q); len(flags) > 0 {
		what += " that match " + strings.Join(flags, ", ")
	}
	related := e.misspelled(ctx, q)
	if len(objects) > 0 && q.Role == query.Regarding {
		related += " Pass --related to search Events in which an object is the related one, too."
	}
	if namespace == "" {
		fmt.Fprintf(e.ErrOut, "%s in any namespace.%s\n", what, related)
		return nil
	}
	namespace = text.Clean(namespace)
	if client, err := e.core(); err == nil {
		if _, err := client.Namespaces().Get(ctx, namespace, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return fmt.Errorf("the namespace %q does not exist", namespace)
		}
	}
	hint := "Pass -A for all namespaces, or -n for another one."
	if len(objects) == 1 && objects[0].Name != "" && !objects[0].ClusterScoped {
		anywhere := objects[0]
		anywhere.Namespace = ""
		found, err := e.candidates(ctx, anywhere, nil, query.Regarding, q.At)
		here := slices.ContainsFunc(found, func(c candidate) bool { return c.object.Namespace == namespace })
		switch {
		case err != nil:
			hint = "Pass -n for another one." // -A would fail
		case len(found) > 0 && !here:
			elsewhere := found[0].object
			return fmt.Errorf("no events about %s in the namespace %s, but in %s: pass %q",
				argument(elsewhere), namespace, text.Clean(elsewhere.Namespace), arguments(elsewhere))
		case objects[0].Container != "":
			pod := objects[0]
			pod.Container = ""
			hint = fmt.Sprintf("Pass %q for all containers.", arguments(pod))
		}
	}
	fmt.Fprintf(e.ErrOut, "%s in the namespace %s. %s%s\n", what, namespace, hint, related)
	return nil
}

// misspelled returns which values of flags Events have in upper and lower case of another kind, as a
// sentence after another one. It is empty if there are none.
func (e *environment) misspelled(ctx context.Context, q query.Query) string {
	flags := []struct {
		name   string
		values []string
		of     func(*query.Item) string
	}{
		{"--controller", q.Controllers, (*query.Item).Controller}, {"--instance", q.Instances, func(i *query.Item) string { return i.Key.ReportingInstance }},
		{"--node", q.Nodes, (*query.Item).Node}, {"--reason", q.Reasons, func(i *query.Item) string { return i.Key.Reason }},
		{"--action", q.Actions, func(i *query.Item) string { return i.Key.Action }},
	}
	if len(q.Controllers)+len(q.Instances)+len(q.Nodes)+len(q.Reasons)+len(q.Actions) == 0 {
		return ""
	}
	reader, progress, err := e.reader(query.Options{OnWarning: func(error) {}})
	if err != nil {
		return ""
	}
	defer progress.clear()
	meant := sets.New[string]()
	for item, err := range reader.List(ctx, query.Query{Namespaces: q.Namespaces, Objects: q.Objects, Role: q.Role, At: q.At}) {
		if err != nil {
			break
		}
		for _, f := range flags {
			got := f.of(item)
			if !slices.Contains(f.values, got) && slices.ContainsFunc(f.values, func(v string) bool { return strings.EqualFold(v, got) }) {
				meant.Insert(f.name + " " + quote(got))
			}
		}
	}
	if len(meant) == 0 {
		return ""
	}
	return " Did you mean " + strings.Join(sets.List(meant), " or ") + "?"
}

func selecting(q query.Query) []string {
	var flags []string
	for _, f := range []struct {
		name string
		used bool
	}{
		{"--controller", len(q.Controllers) > 0}, {"--instance", len(q.Instances) > 0}, {"--node", len(q.Nodes) > 0},
		{"--reason", len(q.Reasons) > 0}, {"--action", len(q.Actions) > 0}, {"--type", len(q.Types) > 0}, {"--state", len(q.States) > 0}, {"--note", q.Note != ""},
		{"--since", !q.Since.IsZero()}, {"--until", !q.Until.IsZero()}, {"--began", !q.Began.IsZero()},
		{"--selector", q.LabelSelector != ""}, {"--field-selector", q.FieldSelector != ""},
	} {
		if f.used {
			flags = append(flags, f.name)
		}
	}
	return flags
}
