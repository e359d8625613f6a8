package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
)

// isWorkload reports whether an object is a workload of Kubernetes, which has Pods.
func isWorkload(o query.Object) bool {
	return o.Kind != "Pod" && o.Kind != "PersistentVolumeClaim" &&
		slices.ContainsFunc(query.DefaultDependents(), func(k schema.GroupVersionKind) bool { return k.Kind == o.Kind })
}

// hasDependents reports whether an object can have dependents with events: a workload, or an object of
// another API.
func hasDependents(o query.Object) bool {
	group := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).Group
	return !o.ClusterScoped && (isWorkload(o) || strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io"))
}

// dependents returns the series about the dependents of the subject that q selects, also about those that
// have been deleted, and a sentence that sums up the Warnings about all of them.
func (v *view) dependents(ctx context.Context, reader *query.Reader, q query.Query) (items []*query.Item, sum string, err error) {
	roots, err := v.roots(ctx, v.subject.Namespace)
	switch {
	case err == nil || v.offline():
	case isWorkload(v.subject):
		v.problem("the dependents are guesses from names", err)
	default:
		v.problem("dependents are missing", err)
	}
	existing := make(map[string]sets.Set[string]) // names by kind
	for _, o := range roots.Dependents(v.subject) {
		if existing[o.Kind] == nil {
			existing[o.Kind] = sets.New[string]()
		}
		existing[o.Kind].Insert(o.Name)
	}
	if len(existing) == 0 && !isWorkload(v.subject) {
		return nil, "", nil
	}
	all, err := collect(reader.List(ctx, query.Query{Namespaces: []string{v.subject.Namespace}, At: q.At}))
	if err != nil {
		return nil, "", err
	}
	all = slices.DeleteFunc(all, func(item *query.Item) bool { return !v.owns(roots, item) })
	sum = warnings(all, existing) // whatever the caller selects
	q.Objects = nil
	return slices.DeleteFunc(all, func(item *query.Item) bool { return !q.Matches(item) }), sum, nil
}

// owns reports whether the subject is an owner of the object of an item.
func (v *view) owns(roots *query.Roots, item *query.Item) bool {
	ref := item.Key.Regarding
	ref.Namespace = cmp.Or(ref.Namespace, item.Namespace)
	if owners := roots.Owners(ref); len(owners) > 0 {
		return slices.ContainsFunc(owners, func(o query.Object) bool { return bare(o) == bare(v.subject) })
	}
	if _, known := roots.Of(ref); known {
		return false // it has none
	}
	switch guess := guessOwner(ref.Kind, ref.Name); v.subject.Kind {
	case "Deployment", "CronJob":
		return guess == v.subject.Kind+"/"+v.subject.Name
	case "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController":
		return guess != "" && ref.Kind == "Pod" && ref.Name[:strings.LastIndexByte(ref.Name, '-')] == v.subject.Name
	default:
		return false
	}
}

// prospects are what the Warnings about an object can be, the worst first.
var prospects = []string{"ongoing", "possibly ongoing", "past"}

// warnings sums up the Warnings about dependents: "3 of 8 Pods with ongoing Warnings (BackOff), 1 deleted Pod
// with past Warnings (Evicted)".
func warnings(items []*query.Item, existing map[string]sets.Set[string]) string {
	type object struct{ kind, name string }
	worst, reasons := make(map[object]int), make(map[object]sets.Set[string])
	for _, item := range items {
		if item.Key.Type != corev1.EventTypeWarning {
			continue
		}
		o := object{item.Key.Regarding.Kind, item.Key.Regarding.Name}
		prospect := 2
		switch item.State {
		case series.Ongoing:
			prospect = 0
		case series.Unknown:
			prospect = 1
		default: // past
		}
		if before, had := worst[o]; !had || prospect < before {
			worst[o], reasons[o] = prospect, sets.New[string]()
		}
		if worst[o] == prospect {
			reasons[o].Insert(text.Clean(item.Key.Reason))
		}
	}
	type class struct {
		prospect int
		kind     string
		deleted  int // 1 if the objects do not exist
	}
	counts, why := make(map[class]int), make(map[class]sets.Set[string])
	for o, prospect := range worst {
		c := class{prospect, o.kind, 0}
		if len(existing) > 0 && !existing[o.kind].Has(o.name) {
			c.deleted = 1
		}
		counts[c]++
		why[c] = reasons[o].Union(why[c])
	}
	var parts []string
	for _, c := range slices.SortedFunc(maps.Keys(counts), func(a, b class) int {
		return cmp.Or(cmp.Compare(a.prospect, b.prospect), cmp.Compare(len(existing[b.kind]), len(existing[a.kind])), cmp.Compare(a.kind, b.kind),
			cmp.Compare(a.deleted, b.deleted))
	}) {
		of := text.Plural(counts[c], text.Clean(c.kind))
		switch n := len(existing[c.kind]); {
		case c.deleted == 1:
			of = text.Plural(counts[c], "deleted "+text.Clean(c.kind))
		case n > 0:
			of = fmt.Sprintf("%d of %s", counts[c], text.Plural(n, text.Clean(c.kind)))
		}
		parts = append(parts, fmt.Sprintf("%s with %s Warnings (%s)", of, prospects[c.prospect], strings.Join(first(sets.List(why[c]), 3), ", ")))
	}
	if len(parts) == 0 && len(existing) > 0 {
		for _, kind := range slices.Sorted(maps.Keys(existing)) {
			parts = append(parts, text.Plural(len(existing[kind]), kind))
		}
		parts = append(parts, "no Warnings")
	}
	return strings.Join(parts, ", ")
}

func first(values []string, n int) []string {
	if len(values) > n {
		return append(slices.Clip(values[:n]), fmt.Sprintf("%d more", len(values)-n))
	}
	return values
}
