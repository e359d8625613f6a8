// Package group adds up series that say the same about similar objects: "BackOff × 40 Pods of
// Deployment/web".
package group

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
)

// By is what the series of a group share, in addition to the reason, the type, and the kind of
// the object.
type By string

// The values of By.
const (
	Owner  By = "owner"  // the workload that the object belongs to
	Reason By = "reason" // nothing else
	Node   By = "node"   // [query.Item.Node]
)

// All returns all values of By as strings.
func All() []string { return []string{string(Owner), string(Reason), string(Node)} }

// Group is a number of series. Its sums are those of [query.Group].
type Group struct {
	query.Group
	// Reason and Type are those of the Events, and Kind is that of their objects. Reason is
	// empty if the group contains what remains.
	Reason, Type, Kind string
	// Namespace is that of all Events, or empty if they differ.
	Namespace string
	// Owner is the owner, such as Deployment/web, and Node the Node. They are empty if there is
	// none, or unless grouped by it.
	Owner, Node string
	// Items are the series: the ongoing ones first, and the latest of each state first.
	Items []*query.Item
	// Objects is the number of different objects.
	Objects int
	// State is the first state in [query.States] that a series has.
	State series.State
}

// Of groups items. owner returns the owner of an object; it is only called for [Owner]. Groups
// with ongoing series come first, and those that occurred last. limit, if positive, is the number
// of groups: the last one contains the series that are in none of the others. Owners and their
// objects are in the namespace of their Events.
func Of(items []*query.Item, by By, owner func(*query.Item) string, limit int) []*Group {
	type key struct{ reason, kind, eventType, namespace, owner, node string }
	groups := make(map[key]*Group)
	var all []*Group
	for _, item := range items {
		k := key{reason: item.Key.Reason, kind: item.Key.Regarding.Kind, eventType: item.Key.Type}
		switch by {
		case Owner:
			k.owner, k.namespace = owner(item), item.Namespace
		case Node:
			k.node = item.Node()
		case Reason:
		}
		g := groups[k]
		if g == nil {
			g = &Group{Reason: k.reason, Type: k.eventType, Kind: k.kind, Owner: k.owner, Node: k.node}
			groups[k] = g
			all = append(all, g)
		}
		g.Items = append(g.Items, item)
	}
	for _, g := range all {
		g.complete()
	}
	slices.SortStableFunc(all, func(a, b *Group) int {
		return cmp.Or(cmp.Compare(rank(a.State), rank(b.State)), b.Last.Compare(a.Last), cmp.Compare(a.Title(), b.Title()))
	})
	if limit > 0 && len(all) > limit {
		rest := &Group{}
		for _, g := range all[limit-1:] {
			rest.Items = append(rest.Items, g.Items...)
		}
		rest.complete()
		all = append(all[:limit-1], rest)
	}
	return all
}

func rank(s series.State) int { return slices.Index(query.States(), s) }

// complete computes what follows from the items.
func (g *Group) complete() {
	slices.SortStableFunc(g.Items, func(a, b *query.Item) int {
		return query.ByState.Key(a).Compare(query.ByState.Key(b))
	})
	objects := make(map[series.Reference]bool)
	g.State, g.Namespace = g.Items[0].State, g.Items[0].Namespace
	warning := false
	for _, item := range g.Items {
		g.Add(item)
		ref := item.Key.Regarding
		objects[series.Reference{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}] = true
		if item.Namespace != g.Namespace {
			g.Namespace = ""
		}
		warning = warning || item.Key.Type == corev1.EventTypeWarning
	}
	g.Objects = len(objects)
	if g.Type == "" && warning {
		g.Type = corev1.EventTypeWarning
	}
}

// Title returns what the series of the group share: "BackOff × 40 Pods of Deployment/web".
func (g *Group) Title() string {
	if g.Reason == "" {
		return g.What()
	}
	return text.Clean(g.Reason) + " × " + g.What()
}

// What returns the objects of the group: "40 Pods of Deployment/web", or the object if there is one.
func (g *Group) What() string {
	s := text.Count(int64(g.Objects)) + " " + plural(text.Clean(g.Kind))
	switch {
	case g.Kind == "" && g.Reason == "":
		s = text.Count(int64(len(g.Items))) + " other series"
	case g.Kind == "":
		s = text.Plural(g.Objects, "object")
	case g.Objects == 1:
		ref := g.Items[0].Key.Regarding
		if len(g.Items) > 1 {
			ref.FieldPath = ""
		}
		s = text.Object(ref, g.Items[0].Namespace)
	}
	if g.Owner != "" && (g.Objects > 1 || !strings.HasSuffix(g.Owner, "-*")) {
		s += " of " + text.Clean(g.Owner)
	}
	if g.Node != "" && (g.Kind != "Node" || g.Objects > 1) {
		s += " on " + text.Clean(g.Node)
	}
	return s
}

func plural(kind string) string {
	switch {
	case strings.HasSuffix(kind, "s"), strings.HasSuffix(kind, "x"):
		return kind + "es"
	case strings.HasSuffix(kind, "ay"), strings.HasSuffix(kind, "ey"):
		return kind + "s"
	case strings.HasSuffix(kind, "y"):
		return strings.TrimSuffix(kind, "y") + "ies"
	default:
		return kind + "s"
	}
}
