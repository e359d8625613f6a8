package query

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/series"
)

// Query selects series. The zero value selects all of them. Values in one list are
// alternatives; a series must match all fields that are not empty.
type Query struct {
	// Namespaces are the namespaces of the Events. If empty, [Reader.List] searches
	// where Events about Objects can be, or all namespaces if there are no Objects.
	//
	// Leave it empty to find Events about a cluster-scoped object: they are in the
	// namespace default or kube-system.
	Namespaces []string
	// Objects are the objects that the Events are about.
	Objects []Object
	// Role is the role that the objects have in the Events. The zero value is
	// [RegardingOrRelated].
	Role Role
	// Controllers are the values of [Item.Controller].
	Controllers []string
	// Instances are the instances that reported the Events: see [Item.ReportedBy]. With
	// Controllers, they select the Events of a component on a machine.
	Instances []string
	// Nodes are the values of [Item.Node].
	Nodes []string
	// Reasons, Actions, and Types are the values of the fields of the Event.
	Reasons, Actions, Types []string
	// Note is a text that the first or the latest note contains, in upper or lower case.
	Note string
	// States are the states at the time of the query.
	States []series.State
	// Since and Until select the series that were running or occurred between these
	// times, both included: the last occurrence is not before Since, and the first is
	// not after Until. A zero time is no limit.
	Since, Until time.Time
	// Began selects the series whose first occurrence is not before it, and not in the
	// future. A zero time is no limit.
	Began time.Time
	// FieldSelector and LabelSelector are passed to the server in addition. The field
	// selector has the names of events.k8s.io/v1, such as "regarding.kind=Pod"; names
	// of core/v1 such as "involvedObject.kind" are accepted, too. The Reader selects by
	// "source" through core/v1, because events.k8s.io/v1 does not know it. In a watch, a
	// series that leaves them is Deleted, so select by state with States instead.
	FieldSelector, LabelSelector string
	// At is the time to which the states refer. If zero, it is the time at which the
	// Reader receives the Event.
	At time.Time
}

// Role is the role of an object in an Event.
type Role uint8

const (
	// RegardingOrRelated is either role.
	RegardingOrRelated Role = iota
	// Regarding is the object that the Event is about. The server selects by it.
	Regarding
	// Related is the second object of the Event. The server cannot select by it, so
	// the Reader lists all Events.
	Related
)

// Object selects an object of Events. Empty fields match any value.
//
// Without a UID it also selects earlier objects of the same name, such as the Pods of
// a StatefulSet before the current one. With a UID it selects one object.
type Object struct {
	// APIVersion is a group and version, such as "apps/v1". The version does not
	// matter, and Events without an apiVersion match.
	APIVersion string
	// Kind is the kind of the object, such as "Pod".
	Kind string
	// Namespace is the namespace of the object.
	Namespace string
	// ClusterScoped says that the object has no namespace. Its Events are in the
	// namespaces default and kube-system, so the Reader need not search all others.
	ClusterScoped bool
	// Name is the name of the object.
	Name string
	// Container is the name of a container of the Pod. If empty, Events about the Pod and
	// about each of its containers match.
	Container string
	// UID is the UID of the object. For a Node, Events whose UID is the name of the
	// Node match as well, because the kubelet writes them.
	UID types.UID
}

// ObjectOf returns the Object that selects the object of a reference.
func ObjectOf(ref series.Reference) Object {
	return Object{
		APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, ClusterScoped: ref.Namespace == "",
		Name: ref.Name, UID: ref.UID,
	}
}

// Matches reports whether ref refers to the object.
func (o Object) Matches(ref series.Reference) bool {
	return !ref.IsZero() &&
		(o.UID == "" || o.UID == ref.UID || isNode(ref.Kind, o.Kind) && string(ref.UID) == ref.Name && o.Name == ref.Name) &&
		(o.Name == "" || o.Name == ref.Name) &&
		(o.Container == "" || strings.HasSuffix(ref.FieldPath, "{"+o.Container+"}")) &&
		(o.Kind == "" || o.Kind == ref.Kind) &&
		(o.Namespace == "" || o.Namespace == ref.Namespace) &&
		(!o.ClusterScoped || ref.Namespace == "") &&
		(o.APIVersion == "" || ref.APIVersion == "" || groupOf(o.APIVersion) == groupOf(ref.APIVersion))
}

// Concerns reports whether an object has a role in the Event. Unlike [Object.Matches], it
// assumes that a reference without a namespace to an object that has one refers to the
// namespace of the Event: some recorders write none.
func (i *Item) Concerns(o Object, role Role) bool {
	matches := func(ref series.Reference) bool {
		if ref.Namespace == "" && !o.ClusterScoped && !ref.IsZero() {
			ref.Namespace = i.Namespace
		}
		return o.Matches(ref)
	}
	return role != Related && matches(i.Key.Regarding) || role != Regarding && matches(i.Key.Related)
}

// isNode reports whether both kinds are that of Nodes, to which the kubelet refers with the
// name as UID.
func isNode(a, b string) bool { return a == "Node" && b == "Node" }

func groupOf(apiVersion string) string {
	group, _, hasGroup := strings.Cut(apiVersion, "/")
	if !hasGroup {
		return ""
	}
	return group
}

// Matches reports whether the query selects an item. It ignores [Query.Namespaces],
// [Query.FieldSelector], and [Query.LabelSelector], which the server applies.
func (q *Query) Matches(item *Item) bool {
	return contains(q.States, item.State) &&
		contains(q.Types, item.Key.Type) &&
		contains(q.Reasons, item.Key.Reason) &&
		contains(q.Actions, item.Key.Action) &&
		contains(q.Controllers, item.Controller()) &&
		(q.Note == "" || strings.Contains(strings.ToLower(item.Note+"\n"+item.LastNote), strings.ToLower(q.Note))) &&
		(len(q.Instances) == 0 || slices.ContainsFunc(q.Instances, item.ReportedBy)) &&
		(len(q.Nodes) == 0 || slices.Contains(q.Nodes, item.Node())) &&
		(len(q.Objects) == 0 || slices.ContainsFunc(q.Objects, func(o Object) bool { return item.Concerns(o, q.Role) })) &&
		q.inTime(item)
}

func contains[T comparable](wanted []T, got T) bool {
	return len(wanted) == 0 || slices.Contains(wanted, got)
}

// inTime reports whether an item began after Began, and is between Since and Until. An ongoing series lasts
// until the time of its state, although its Event names an earlier time. A time that is further ahead
// than a clock can be does not tell when a series began.
func (q *Query) inTime(item *Item) bool {
	last := firstSet(item.Last, item.First)
	if item.State == series.Ongoing && item.At.After(last) {
		last = item.At
	}
	began := q.Began.IsZero() || !item.First.Before(q.Began) && !item.At.Before(item.First.Add(-series.ClockSkew))
	return began && (q.Since.IsZero() || !last.Before(q.Since)) && (q.Until.IsZero() || !item.First.After(q.Until))
}

// changesAt returns the earliest time after item.At after which item has another state, or matches
// q in another way, although its Event does not change. It is zero if there is none.
func (q *Query) changesAt(item *Item) (earliest time.Time) {
	if !q.At.IsZero() {
		return time.Time{}
	}
	at := func(t time.Time) {
		if !t.Before(item.At) && (earliest.IsZero() || t.Before(earliest)) {
			earliest = t
		}
	}
	if item.State == series.Ongoing {
		at(q.Since)
	}
	switch {
	case item.State == series.Unknown && item.ahead():
		at(item.validAt())
	case item.State == series.Unknown && !item.Contended.IsZero():
		at(item.quietAt())
	case item.State != series.Quiet && !item.StaleAt.IsZero():
		at(item.StaleAt)
	}
	if !q.Began.IsZero() {
		at(item.First.Add(-series.ClockSkew))
	}
	return earliest
}
