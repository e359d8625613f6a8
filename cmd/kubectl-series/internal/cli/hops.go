package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/timeline"
	"github.com/eventseries/eventseries/query"
)

// Limits of what is connected with an object.
const (
	maxHops  = 8 // commands that show more, and paths
	maxDepth = 4 // Events between two objects
)

// hop is an object that is connected with another one.
type hop struct {
	object query.Object
	why    string
}

// chain returns an object with its UID, if it exists, its static Pod, and then its owners. errs say what is missing.
func (e *environment) chain(ctx context.Context, o query.Object) (objects []query.Object, errs []error) {
	reader, err := e.ownersReader()
	if err != nil {
		return []query.Object{o}, []error{err}
	}
	return reader.Follow(ctx, o)
}

// specified returns the owners of an object, and the Node and the volumes of a Pod, as far as they
// exist and the user may read them. owners are those of [environment.chain].
func (e *environment) specified(ctx context.Context, o query.Object, owners []query.Object) []hop {
	var hops []hop
	if client, err := e.core(); err == nil && o.Kind == "Pod" && o.Namespace != "" {
		pod, err := client.Pods(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return nil // its metadata cannot be read, either
		}
		for i := range pod.Spec.Volumes {
			v := &pod.Spec.Volumes[i]
			claim := query.Object{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: o.Namespace}
			switch {
			case v.PersistentVolumeClaim != nil:
				claim.Name = v.PersistentVolumeClaim.ClaimName
			case v.Ephemeral != nil:
				claim.Name = pod.Name + "-" + v.Name
			default:
				continue
			}
			hops = append(hops, hop{claim, "volume"})
		}
		if name := pod.Spec.NodeName; name != "" {
			hops = append(hops, hop{query.Object{APIVersion: "v1", Kind: "Node", Name: name, ClusterScoped: true}, "node"})
		}
	}
	for _, owner := range owners[1:] {
		if owner.Kind != o.Kind || owner.Name != o.Name { // not a mirror Pod
			hops = append(hops, hop{owner, "owner"})
		}
	}
	return hops
}

// connected returns objects, and then those that are connected with them, by Events and by what they
// specify. paths say how.
func (v *view) connected(ctx context.Context, reader *query.Reader, objects []query.Object) (all []query.Object, paths []string, err error) {
	begin := slices.Clone(objects)
	why := make(map[query.Object]string)
	var beside []query.Object // an owner or a Node is connected with many objects that do not matter
	for _, h := range v.specified(ctx, v.subject, v.owned) {
		why[bare(h.object)] = h.why
		if h.why == "volume" {
			begin = append(begin, h.object)
		} else {
			beside = append(beside, h.object)
		}
	}
	found, err := reader.Connected(ctx, begin, maxDepth)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range beside {
		if !slices.ContainsFunc(found, func(c query.Connection) bool { return bare(c.Object) == bare(o) }) {
			found = append(found, query.Connection{Object: o, From: -1})
		}
	}
	ends := make(map[int]bool) // of paths
	for i, c := range found {
		all = append(all, c.Object)
		ends[i] = i > 0
		delete(ends, c.From)
	}
	all[0].UID = v.subject.UID
	for i := range found {
		if ends[i] && len(paths) < maxHops {
			paths = append(paths, v.path(found, i, why))
		}
	}
	return all, paths, nil
}

// path returns how found[i] is connected with the subject: "Pod/checkout-0 → Node/worker-3 (node)".
func (v *view) path(found []query.Connection, i int, why map[query.Object]string) string {
	s := ""
	for ; i > 0; i = max(found[i].From, 0) {
		reason := why[bare(found[i].Object)]
		if found[i].Item != nil {
			reason = found[i].Item.Key.Reason
		}
		s = " → " + v.name(found[i].Object) + " (" + text.Clean(reason) + ")" + s
	}
	return v.name(v.subject) + s
}

// name returns the name of an object in the timeline.
func (v *view) name(o query.Object) string {
	s := o.Kind + "/" + o.Name
	if o.Namespace != "" && o.Namespace != v.subject.Namespace {
		s = o.Namespace + "/" + s
	}
	return text.Clean(s)
}

// bare returns what identifies an object in a command.
func bare(o query.Object) query.Object {
	return query.Object{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// next returns the commands that show what is connected with the object of a timeline.
func (v *view) next(ctx context.Context) []timeline.Hop {
	if v.follow {
		return nil
	}
	var hops []hop
	sorted := slices.Clone(v.items)
	slices.SortStableFunc(sorted, func(a, b *query.Item) int { return query.ByState.Key(a).Compare(query.ByState.Key(b)) })
	for _, item := range sorted {
		for _, ref := range references(item) {
			if ref.Name != "" {
				hops = append(hops, hop{v.objectOf(ref, item.Namespace), item.Key.Reason})
			}
		}
	}
	return v.commands(append(hops, v.specified(ctx, v.subject, v.owned)...), v.subject, v.subject)
}

// commands returns the commands for hops from an object, each object once, without the one that is shown.
func (e *environment) commands(hops []hop, from, shown query.Object) []timeline.Hop {
	seen := map[query.Object]bool{bare(shown): true}
	var next []timeline.Hop
	for _, h := range hops {
		if o := bare(h.object); !seen[o] && o.Name != "" && len(next) < maxHops {
			seen[o] = true
			next = append(next, timeline.Hop{Command: e.timelineCommand(h.object), Why: text.Clean(h.why)})
		}
	}
	if len(next) > 0 && from.Name != "" {
		next = append(next, timeline.Hop{Command: e.timelineCommand(from) + " --follow", Why: "all of them, and what is connected with them"})
	}
	return next
}

// timelineCommand returns the command that shows the timeline of an object.
func (e *environment) timelineCommand(o query.Object) string {
	s := "kubectl series timeline " + arguments(o)
	if context := *e.flags.Context; context != "" {
		s += " --context " + quote(context)
	}
	return s + e.fileArguments()
}

// ownersReader returns what reads the owners of objects.
func (e *environment) ownersReader() (*query.Owners, error) {
	config, err := e.config()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper, err := e.flags.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	return &query.Owners{Metadata: client, Mapper: mapper, PageSize: e.pageSize()}, nil
}

// roots returns the owners of the objects in a namespace, or in all of them if it is empty. err says what is missing.
func (e *environment) roots(ctx context.Context, namespace string) (*query.Roots, error) {
	reader, err := e.ownersReader()
	if err != nil {
		return &query.Roots{}, err
	}
	roots, missing := reader.Roots(ctx, namespace)
	if len(missing) > 0 {
		err = missing[0] // the others are alike
	}
	return roots, err
}

// ownerOf returns what names the owner of the object of an item: that of the server or, if it knows
// none, what the name tells. It is empty if there is none. namespace is that of the objects, or empty for all of them.
func (e *environment) ownerOf(ctx context.Context, namespace string) func(*query.Item) string {
	roots, err := e.roots(ctx, namespace)
	if err != nil && !e.offline() {
		e.warn("the owners are guesses from names", err)
	}
	return func(item *query.Item) string {
		ref := item.Key.Regarding
		ref.Namespace = cmp.Or(ref.Namespace, item.Namespace)
		root, ok := roots.Of(ref)
		switch {
		case ok && (root.Kind != ref.Kind || root.Name != ref.Name):
			return root.Kind + "/" + root.Name
		case !ok:
			return guessOwner(ref.Kind, ref.Name)
		default:
			return ""
		}
	}
}

// guessOwner returns the owner of a Pod, a ReplicaSet, or a Job as its name tells: Deployment/web for
// web-6d4cf9b7c-9tq8d, and web-* for web-9tq8d and web-0, because several kinds name their Pods so. It
// is empty if the name tells nothing.
func guessOwner(kind, name string) string {
	parts := strings.Split(name, "-")
	n := len(parts)
	isPod := kind == "Pod"
	if isPod && n >= 3 && isSuffix(parts[n-1], 5) {
		n--
	}
	hasController := !isPod || n < len(parts)
	isNumber := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	switch {
	case n < 2 || !isPod && kind != "ReplicaSet" && kind != "Job":
		return ""
	case hasController && kind != "ReplicaSet" && isNumber(parts[n-1]) && len(parts[n-1]) == 8: // minutes since 1970
		return "CronJob/" + strings.Join(parts[:n-1], "-")
	case hasController && kind != "Job" && isSuffix(parts[n-1], 10):
		return "Deployment/" + strings.Join(parts[:n-1], "-")
	case isPod && (isSuffix(parts[len(parts)-1], 5) || isNumber(parts[len(parts)-1])):
		return strings.Join(parts[:len(parts)-1], "-") + "-*"
	default:
		return ""
	}
}

// isSuffix reports whether controllers can have generated s, which has from 5 to most characters of
// k8s.io/apimachinery/pkg/util/rand.
func isSuffix(s string, most int) bool {
	return len(s) >= 5 && len(s) <= most && strings.Trim(s, "bcdfghjklmnpqrstvwxz2456789") == ""
}
