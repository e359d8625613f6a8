package query

import (
	"context"
	"errors"
	"slices"
)

// maxNeighbors is how many neighbors an object can have so that [Reader.Connected] goes beyond it.
// Many objects are connected with a hub, such as a ReplicaSet with its Pods, and most of
// them have nothing to do with each other.
const maxNeighbors = 10

// Connection is an object that Events connect with another one.
type Connection struct {
	// Object is the object, without its UID.
	Object Object
	// From is the index of the object with which it is connected, or -1 for the first ones.
	From int
	// Item is the first series in the order of [ByState] that connects them; nil for the first
	// ones.
	Item *Item
}

// Connected returns the given objects, and then those that Events connect with them, the nearest
// first: an Event connects its regarding and its related object. depth is how many Events apart
// they are at most. Connected goes neither beyond Nodes, with which all of their Pods are
// connected, nor beyond an object with more than 10 neighbors, unless it is given.
//
// It reads all Events that the user may list, once, and keeps those with a related object.
func (r *Reader) Connected(ctx context.Context, objects []Object, depth int) ([]Connection, error) {
	q := &Query{Objects: objects}
	requests, err := q.plan(true)
	if err != nil {
		return nil, err
	}
	edges := make(map[Object][]edge)
	l := &lister{reader: r, query: q, progress: r.opts.OnProgress}
	err = l.run(ctx, requests, func(item *Item) bool {
		from, to := plain(ObjectOf(item.Key.Regarding)), plain(ObjectOf(item.Key.Related))
		if to.Name != "" && from != to {
			edges[from] = append(edges[from], edge{to, item})
			edges[to] = append(edges[to], edge{from, item})
		}
		return true
	})
	if err != nil && !errors.Is(err, errStopped) {
		return nil, err
	}
	var found []Connection
	seen := make(map[Object]bool)
	for _, o := range objects {
		o.UID = ""
		found = append(found, Connection{Object: o, From: -1})
		seen[plain(o)] = true
	}
	begin := 0
	for range depth {
		end := len(found)
		for i := begin; i < end; i++ {
			found = neighbors(found, i, edges, seen)
		}
		begin = end
	}
	return found, nil
}

// edge is an Event that connects an object with another one.
type edge struct {
	to   Object
	item *Item
}

// neighbors appends the objects that are connected with found[i] and not seen yet.
func neighbors(found []Connection, i int, edges map[Object][]edge, seen map[Object]bool) []Connection {
	from := plain(found[i].Object)
	out := slices.Clone(edges[from])
	slices.SortStableFunc(out, func(a, b edge) int { return ByState.Key(a.item).Compare(ByState.Key(b.item)) })
	distinct := make(map[Object]bool)
	for _, e := range out {
		distinct[e.to] = true
	}
	if from.Kind == "Node" || len(distinct) > maxNeighbors && found[i].From >= 0 {
		return found
	}
	for _, e := range out {
		if !seen[e.to] {
			seen[e.to] = true
			o := e.to
			o.ClusterScoped = o.Namespace == ""
			found = append(found, Connection{Object: o, From: i, Item: e.item})
		}
	}
	return found
}

// plain returns an object as a key of edges.
func plain(o Object) Object { return Object{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name} }
