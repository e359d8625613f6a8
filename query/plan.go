package query

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/eventseries/eventseries/series"
)

// maxObjectRequests is up to how many objects have a request each. For more of them,
// the Reader lists all Events of a namespace.
const maxObjectRequests = 8

// clusterNamespaces are where Events about cluster-scoped objects are: the API server
// accepts no other namespace for them.
var clusterNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem}

// request selects Events on the server: a list or a watch in one namespace.
type request struct {
	namespace string // empty for all namespaces
	// fields are the values that are derived from the query, and userFields the selector
	// of the caller. Both have the names of events.k8s.io/v1.
	fields     fields.Set
	userFields fields.Selector
	labels     labels.Selector
	// onlyCore says that userFields has a field that only core/v1 selects by.
	onlyCore bool
	// instead are the namespaces to search if the user may not list all of them.
	instead []string
	// optional says that a denial is no news, because that of all namespaces is reported.
	optional bool
	// unselected says that the server cannot select by fields.
	unselected bool
}

// covers reports whether the server returns an item for the request, as far as the query
// determines that. An item belongs to the first request of a plan that covers it.
func (r *request) covers(item *Item) bool {
	if r.namespace != "" && r.namespace != item.Namespace || !r.labels.Matches(labels.Set(item.Event.Labels)) {
		return false
	}
	if len(r.fields) == 0 {
		return true
	}
	of := selectable(item.Event)
	for field, value := range r.fields {
		if of[field] != value {
			return false
		}
	}
	return true
}

// plan returns requests that together return all Events that q selects, and as few
// others as the server's selectors permit. byState permits to select by the label of
// the state, which changes during the life of an Event.
func (q *Query) plan(byState bool) ([]request, error) {
	userFields, err := fields.ParseSelector(q.FieldSelector)
	if err != nil {
		return nil, fmt.Errorf("query: field selector %q: %w", q.FieldSelector, err)
	}
	userFields, err = userFields.Transform(eventsField)
	if err != nil {
		return nil, fmt.Errorf("query: field selector %q: %w", q.FieldSelector, err)
	}
	userLabels, err := labels.Parse(q.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("query: label selector %q: %w", q.LabelSelector, err)
	}
	if byState {
		userLabels = userLabels.DeepCopySelector().Add(stateRequirements(q.States)...)
	}

	var requests []request
	for _, base := range q.objectRequests() {
		base.userFields = userFields
		base.onlyCore = slices.ContainsFunc(userFields.Requirements(), func(r fields.Requirement) bool { return r.Field == "source" })
		base.labels = userLabels
		if len(q.Reasons) == 1 { // the server knows no alternatives
			base.fields["reason"] = q.Reasons[0]
		}
		if len(q.Types) == 1 {
			base.fields["type"] = q.Types[0]
		}
		if len(q.Controllers) != 1 {
			requests = append(requests, base)
			continue
		}
		// Old versions of the legacy recorder leave reportingController empty.
		for _, controller := range []string{q.Controllers[0], ""} {
			one := base
			one.fields = maps.Clone(base.fields)
			one.fields["reportingController"] = controller
			requests = append(requests, one)
		}
	}
	return spread(requests, q.Namespaces), nil
}

// objectRequests returns the requests for the objects of a query. The namespace is that
// of the objects.
func (q *Query) objectRequests() []request {
	var requests []request
	if len(q.Objects) == 0 || len(q.Objects) > maxObjectRequests || q.Role != Regarding {
		all := request{fields: fields.Set{}}
		if len(q.Objects) > 0 {
			all.instead = q.likelyNamespaces()
		}
		if q.Role == Regarding && len(all.instead) > 0 {
			return all.narrowed() // there are no Events about the objects in other namespaces
		}
		return []request{all}
	}
	for _, o := range q.Objects {
		for _, namespace := range o.namespaces() {
			requests = append(requests, request{namespace: namespace, fields: o.fields()})
		}
	}
	return requests
}

// narrowed returns the request for each namespace in instead.
func (r *request) narrowed() []request {
	var requests []request
	for _, namespace := range r.instead {
		narrow := *r
		narrow.namespace, narrow.instead = namespace, nil
		requests = append(requests, narrow)
	}
	return requests
}

// namespaces returns the namespaces that Events about the object can be in.
func (o Object) namespaces() []string {
	switch {
	case o.Namespace != "":
		return []string{o.Namespace}
	case o.ClusterScoped:
		return clusterNamespaces
	default:
		return []string{""}
	}
}

// likelyNamespaces returns the namespaces of the objects, and those of Events about
// cluster-scoped objects. It returns none if an object can be in any namespace.
func (q *Query) likelyNamespaces() []string {
	found := sets.New[string]()
	for _, o := range q.Objects {
		found.Insert(o.namespaces()...)
	}
	if found.Has("") {
		return nil
	}
	if q.Role != Regarding {
		found.Insert(clusterNamespaces...)
	}
	return sets.List(found)
}

// fields selects Events about the object. It leaves out the UID of Nodes (see [Object.UID]),
// and the namespace, which is that of the Event: see [Item.Concerns].
func (o Object) fields() fields.Set {
	set := fields.Set{}
	for field, value := range map[string]string{
		"regarding.kind": o.Kind, "regarding.name": o.Name, "regarding.uid": string(o.UID),
	} {
		if value != "" && (field != "regarding.uid" || !isNode(o.Kind, o.Kind)) {
			set[field] = value
		}
	}
	return set
}

// spread repeats requests for each of the given namespaces, if there are any. It leaves
// out requests for other namespaces, and repeated ones.
func spread(requests []request, namespaces []string) []request {
	if len(namespaces) == 0 || slices.Contains(namespaces, "") {
		return distinct(requests)
	}
	var narrowed []request
	for _, namespace := range namespaces {
		for _, r := range requests {
			if r.namespace == "" || r.namespace == namespace {
				r.namespace, r.instead = namespace, nil
				narrowed = append(narrowed, r)
			}
		}
	}
	return distinct(narrowed)
}

func distinct(requests []request) []request {
	seen := sets.New[string]()
	return slices.DeleteFunc(requests, func(r request) bool {
		id := r.namespace + "\x00" + selectorOf(r.fields).String()
		had := seen.Has(id)
		seen.Insert(id)
		return had
	})
}

// selectorOf returns a selector with a certain order of fields.
func selectorOf(set fields.Set) fields.Selector {
	var terms []fields.Selector
	for _, field := range slices.Sorted(maps.Keys(set)) {
		terms = append(terms, fields.OneTermEqualSelector(field, set[field]))
	}
	return fields.AndSelectors(terms...)
}

// stateRequirements selects the labels with which an Event can have one of the wanted
// states. A series that says Ongoing can be stale, and a series without a label can
// have any state but Finished.
func stateRequirements(wanted []series.State) []labels.Requirement {
	if len(wanted) == 0 {
		return nil
	}
	if !slices.ContainsFunc(wanted, func(s series.State) bool { return s != series.Finished }) {
		return []labels.Requirement{requirement(series.LabelState, selection.Equals, series.Finished.String())}
	}
	cannot := sets.New(series.Ongoing.String(), series.Finished.String(), series.Unknown.String())
	for _, state := range wanted {
		if cannot.Delete(state.String()); state == series.Unknown {
			cannot.Delete(series.Ongoing.String())
		}
	}
	if len(cannot) == 0 {
		return nil
	}
	return []labels.Requirement{requirement(series.LabelState, selection.NotIn, sets.List(cannot)...)} // also selects Events without the label
}

// requirement returns a requirement for a label. Its key and values are valid.
func requirement(key string, op selection.Operator, values ...string) labels.Requirement {
	r, err := labels.NewRequirement(key, op, values)
	if err != nil {
		panic(err)
	}
	return *r
}

// options returns the selectors of a request for a group.
func (r *request) options(g *group) metav1.ListOptions {
	selectors := []fields.Selector{r.userFields}
	if !r.unselected {
		selectors = append(selectors, selectorOf(r.fields))
	}
	var terms []string
	for _, selector := range selectors {
		translated, err := selector.Transform(g.field)
		if err != nil { // g.field returns no errors
			panic(err)
		}
		if !translated.Empty() {
			terms = append(terms, translated.String())
		}
	}
	return metav1.ListOptions{FieldSelector: strings.Join(terms, ","), LabelSelector: r.labels.String()}
}

// eventsField returns the name of a field of core/v1 in events.k8s.io/v1.
func eventsField(field, value string) (string, string, error) {
	if sub, ok := strings.CutPrefix(field, "involvedObject."); ok {
		return "regarding." + sub, value, nil
	}
	return cmp.Or(map[string]string{"reportingComponent": "reportingController"}[field], field), value, nil
}

// coreField returns the name of a field of events.k8s.io/v1 in core/v1.
func coreField(field, value string) (string, string, error) {
	if sub, ok := strings.CutPrefix(field, "regarding."); ok {
		return "involvedObject." + sub, value, nil
	}
	return cmp.Or(map[string]string{"reportingController": "reportingComponent"}[field], field), value, nil
}
