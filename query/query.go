package query

import (
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
	// Reasons, Actions, and Types are the values of the fields of the Event.
	Reasons, Actions, Types []string
	// States are the states at the time of the query.
	States []series.State
	// Since and Until select the series that were running or occurred between these
	// times, both included: the last occurrence is not before Since, and the first is
	// not after Until. A zero time is no limit.
	Since, Until time.Time
	// FieldSelector and LabelSelector are passed to the server in addition. The field
	// selector has the names of events.k8s.io/v1, such as "regarding.kind=Pod"; names of core/v1
	// such as "involvedObject.kind" are accepted, too.
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

// Matches reports whether the object of ref is o.
func (o Object) Matches(ref series.Reference) bool { return false }

// Matches reports whether the query selects an item. [Query.FieldSelector] and
// [Query.LabelSelector] are up to the server: Matches ignores them.
func (q *Query) Matches(item *Item) bool { return false }
