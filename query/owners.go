package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"

	"github.com/eventseries/eventseries/series"
)

// Owners follows owner references, such as those from a Pod to its ReplicaSet and its
// Deployment. It is safe for concurrent use.
type Owners struct {
	// Metadata reads the metadata of objects. It is required.
	Metadata metadata.Interface
	// Mapper finds the resource of a kind. It is required.
	Mapper meta.RESTMapper
	// PageSize is the number of objects per request of a list. If 0, it is
	// [DefaultPageSize]. If negative, lists have one page.
	PageSize int64
}

// DefaultDependents returns the built-in kinds that controllers create for other
// objects and emit events about: the workloads, and the Pods and PersistentVolumeClaims
// that belong to them.
func DefaultDependents() []schema.GroupVersionKind {
	core := schema.GroupVersion{Version: "v1"}
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	batch := schema.GroupVersion{Group: "batch", Version: "v1"}
	return []schema.GroupVersionKind{
		apps.WithKind("Deployment"), apps.WithKind("ReplicaSet"), apps.WithKind("StatefulSet"), apps.WithKind("DaemonSet"),
		core.WithKind("ReplicationController"), batch.WithKind("CronJob"), batch.WithKind("Job"),
		core.WithKind("Pod"), core.WithKind("PersistentVolumeClaim"),
	}
}

// Follow returns object with its UID, and then its owners and theirs, for [Query.Objects]. Each
// one is selected by its UID. A mirror Pod is followed by the static Pod of the same name, because
// the kubelet refers to that one by another UID. The object requires a kind and a name, and a
// namespace unless it is cluster-scoped. For its dependents, see [Roots.Dependents].
//
// It needs the permissions to get the object and its owners. Without them, it returns what it
// finds, and a [*PermissionError] for each one that is missing. The errors do not make the
// objects wrong, only incomplete: the first one is always object, without a UID if it does not
// exist.
func (o *Owners) Follow(ctx context.Context, object Object) (objects []Object, errs []error) {
	found, err := o.get(ctx, object)
	if err != nil {
		return []Object{object}, []error{err}
	}
	object.UID = found.UID
	objects = append([]Object{object}, mirrored(object, found)...)
	seen := sets.New(found.UID)
	add := func(found Object) bool {
		isNew := !seen.Has(found.UID)
		if isNew {
			seen.Insert(found.UID)
			objects = append(objects, found)
		}
		return isNew
	}

	for up := []*metav1.PartialObjectMetadata{found}; len(up) > 0; up = up[1:] {
		for _, ref := range up[0].OwnerReferences {
			owner := o.owner(ref, up[0].Namespace)
			if !add(owner) {
				continue
			}
			switch m, err := o.get(ctx, owner); {
			case err == nil:
				up = append(up, m)
			case !apierrors.IsNotFound(err): // the Events of an owner that is gone may still exist
				errs = append(errs, err)
			}
		}
	}
	return objects, errs
}

// mirrored returns the static Pod whose mirror object is, as the kubelet refers to it: with
// the hash of its manifest as UID. It returns nothing for other objects.
func mirrored(object Object, m *metav1.PartialObjectMetadata) []Object {
	hash := m.Annotations[corev1.MirrorPodAnnotationKey]
	if object.Kind != "Pod" || hash == "" {
		return nil
	}
	object.UID = types.UID(hash)
	return []Object{object}
}

// owner returns the object of an owner reference of an object in a namespace.
func (o *Owners) owner(ref metav1.OwnerReference, namespace string) Object {
	owner := Object{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID, Namespace: namespace}
	if mapping, err := o.mapping(ref.APIVersion, ref.Kind); err == nil && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		owner.Namespace, owner.ClusterScoped = "", true
	}
	return owner
}

// mapping returns the resource of a kind, in the version that the server prefers.
func (o *Owners) mapping(apiVersion, kind string) (*meta.RESTMapping, error) {
	return o.Mapper.RESTMapping(schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind())
}

// get reads the metadata of an object. If the object has a UID, an object of the same
// name with another UID is not found.
func (o *Owners) get(ctx context.Context, object Object) (*metav1.PartialObjectMetadata, error) {
	mapping, err := o.mapping(object.APIVersion, object.Kind)
	if err != nil {
		return nil, fmt.Errorf("query: kind %q of %q: %w", object.Kind, object.APIVersion, err)
	}
	found, err := o.resource(mapping, object.Namespace).Get(ctx, object.Name, metav1.GetOptions{})
	if err == nil && object.UID != "" && object.UID != found.UID {
		err = apierrors.NewNotFound(mapping.Resource.GroupResource(), object.Name)
	}
	if err != nil {
		return nil, requestError("get", mapping, object.Namespace, err)
	}
	return found, nil
}

func (o *Owners) resource(mapping *meta.RESTMapping, namespace string) metadata.ResourceInterface {
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return o.Metadata.Resource(mapping.Resource).Namespace(namespace)
	}
	return o.Metadata.Resource(mapping.Resource)
}

// requestError returns the error of a request for a resource.
func requestError(verb string, mapping *meta.RESTMapping, namespace string, err error) error {
	resource := mapping.Resource.GroupResource()
	if apierrors.IsForbidden(err) {
		return &PermissionError{Verb: verb, Group: resource.Group, Resource: resource.Resource, Namespace: namespace, Err: err}
	}
	return fmt.Errorf("query: cannot %s %s in %s: %w", verb, resource, where(namespace), err)
}

// eachDependent visits the metadata of all objects of [DefaultDependents] in a namespace.
func (o *Owners) eachDependent(ctx context.Context, namespace string, visit func(schema.GroupVersionKind, *metav1.PartialObjectMetadata)) (errs []error) {
	for _, kind := range DefaultDependents() {
		mapping, err := o.Mapper.RESTMapping(kind.GroupKind())
		if meta.IsNoMatchError(err) {
			continue // the server does not serve it
		}
		if err == nil {
			err = o.each(ctx, mapping, namespace, func(m *metav1.PartialObjectMetadata) { visit(kind, m) })
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// each visits the metadata of all objects of a resource in a namespace.
func (o *Owners) each(ctx context.Context, mapping *meta.RESTMapping, namespace string, visit func(*metav1.PartialObjectMetadata)) error {
	pages := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return o.resource(mapping, namespace).List(ctx, opts)
	})
	pages.PageSize = DefaultPageSize
	if o.PageSize != 0 {
		pages.PageSize = max(o.PageSize, 0)
	}
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		visit(item.(*metav1.PartialObjectMetadata))
		return nil
	})
	if err != nil {
		return requestError("list", mapping, namespace, err)
	}
	return nil
}

// Roots are the owners of objects, up to the topmost ones: the Deployment of a Pod. Create them with
// [Owners.Roots]. The zero value knows no owners.
type Roots struct {
	byUID  map[types.UID]owned
	byName map[Object]types.UID // of the current object; the key has a kind, a namespace, and a name
	// generators are the objects whose names begin the generated names of others, with their owners. A
	// chain is empty if several objects could have given the names.
	generators map[generator][]Object
}

// owned is an object and its controller.
type owned struct {
	object     Object
	controller *metav1.OwnerReference // nil if it has none
}

// generator is an object whose name begins the names of the objects that it creates.
type generator struct {
	naming    naming
	namespace string
	prefix    string // as it is in the names
}

// naming is what follows the prefix of a name, after a hyphen.
type naming uint8

const (
	random   naming = iota // characters of the API server: a Pod of a ReplicaSet, a DaemonSet, or a Job
	ordinal                // a number: a Pod of a StatefulSet
	numbered               // a number: a Job of a CronJob
	indexed                // a number, and then what random is: a Pod of an indexed Job
	hashed                 // a hash of the template: a ReplicaSet of a Deployment
)

// Roots lists the objects of [DefaultDependents] in a namespace, or in all of them if it is
// empty, to find the owners of any object of these kinds. Without the permission to list one of
// them, it returns what it finds, and a [*PermissionError] for each one that is missing.
func (o *Owners) Roots(ctx context.Context, namespace string) (*Roots, []error) {
	r := &Roots{byUID: make(map[types.UID]owned), byName: make(map[Object]types.UID), generators: make(map[generator][]Object)}
	errs := o.eachDependent(ctx, namespace, func(kind schema.GroupVersionKind, m *metav1.PartialObjectMetadata) {
		object := Object{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: m.Namespace, Name: m.Name, UID: m.UID}
		r.byUID[m.UID] = owned{object, metav1.GetControllerOf(m)}
		r.byName[plain(object)] = m.UID
	})
	for _, object := range r.byUID {
		chain := append([]Object{object.object}, r.owners(object)...)
		r.generates(chain)
		if len(chain) > 1 { // its controller can be of another kind
			r.generates(chain[1:])
			if object.object.Kind == "ReplicaSet" {
				r.generate(hashed, chain[1].Name+"-", chain[1:])
			}
		}
	}
	return r, errs
}

// generates adds the names that the first object of a chain gives.
func (r *Roots) generates(chain []Object) {
	prefix := chain[0].Name + "-"
	short := prefix[:min(len(prefix), maxPrefix)]
	switch chain[0].Kind {
	case "Pod", "PersistentVolumeClaim":
	case "Deployment":
		r.generate(hashed, prefix, chain)
	case "StatefulSet":
		r.generate(ordinal, prefix, chain)
	case "CronJob":
		r.generate(numbered, prefix, chain)
	case "Job":
		r.generate(indexed, prefix, chain)
		r.generate(random, short, chain)
	case "ReplicaSet", "ReplicationController", "DaemonSet":
		r.generate(random, short, chain)
	default: // nobody knows
		r.generate(ordinal, prefix, chain)
		r.generate(random, short, chain)
	}
}

// generate adds a chain. If chains of several roots have the same names, none is known. Of those of
// one root, the longest is known.
func (r *Roots) generate(n naming, prefix string, chain []Object) {
	g := generator{n, chain[0].Namespace, prefix}
	other, had := r.generators[g]
	switch {
	case !had:
		r.generators[g] = chain
	case len(other) == 0 || plain(other[len(other)-1]) != plain(chain[len(chain)-1]):
		r.generators[g] = nil
	case len(chain) > len(other):
		r.generators[g] = chain
	}
}

// Of returns the topmost owner of the object of a reference, which is the object itself if it has
// none. An object that has been deleted belongs to a controller that exists and gives such names:
// the Pod web-6d4cf9b7c-9tq8d to the Deployment web. ok is false if there is none.
func (r *Roots) Of(ref series.Reference) (root Object, ok bool) {
	owners := r.Owners(ref)
	if len(owners) > 0 {
		return owners[len(owners)-1], true
	}
	object, ok := r.find(ref)
	return object.object, ok
}

// Owners returns the owners of the object of a reference, the nearest first: the ReplicaSet and the
// Deployment of a Pod. See [Roots.Of] for an object that has been deleted: the nearest one is the
// nearest that exists.
func (r *Roots) Owners(ref series.Reference) []Object {
	if object, ok := r.find(ref); ok {
		return r.owners(object)
	}
	return r.ofDeleted(ref)
}

// Dependents returns the objects that exist and have o as an owner, in no order.
func (r *Roots) Dependents(o Object) (all []Object) {
	for _, object := range r.byUID {
		if slices.ContainsFunc(r.owners(object), func(owner Object) bool { return plain(owner) == plain(o) }) {
			all = append(all, object.object)
		}
	}
	return all
}

// find returns the object of a reference, or the current one of its name.
func (r *Roots) find(ref series.Reference) (owned, bool) {
	if object, ok := r.byUID[ref.UID]; ok {
		return object, true
	}
	object, ok := r.byUID[r.byName[plain(ObjectOf(ref))]]
	return object, ok
}

// owners returns the owners of an object, the nearest first.
func (r *Roots) owners(o owned) (chain []Object) {
	for c := o.controller; c != nil && len(chain) < maxOwners; c = o.controller {
		next, known := r.byUID[c.UID]
		if !known {
			next.object = Object{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: o.object.Namespace, Name: c.Name, UID: c.UID}
		}
		o = next
		chain = append(chain, o.object)
	}
	return chain
}

// ofDeleted returns the owners of an object that does not exist, as its name tells.
func (r *Roots) ofDeleted(ref series.Reference) (owners []Object) {
	find := func(n naming, prefix string) bool {
		if len(owners) == 0 {
			owners = r.generators[generator{n, ref.Namespace, prefix}]
		}
		return len(owners) > 0
	}
	switch ref.Kind {
	case "Pod":
		if prefix, number := cutSuffix(ref.Name); isNumber(number) {
			find(ordinal, prefix)
		}
		n := max(len(ref.Name)-randomLength, 0)
		if prefix := ref.Name[:n]; isGenerated(ref.Name[n:]) && !find(random, prefix) {
			controller := strings.TrimSuffix(prefix, "-")
			if prefix, number := cutSuffix(controller); isNumber(number) {
				find(indexed, prefix)
			}
			ofController(controller, find)
		}
	case "ReplicaSet", "Job":
		ofController(ref.Name, find)
	}
	return owners
}

// ofController finds the owners of a ReplicaSet or a Job that does not exist.
func ofController(name string, find func(naming, string) bool) {
	prefix, suffix := cutSuffix(name)
	if isNumber(suffix) {
		find(numbered, prefix)
	}
	if isGenerated(suffix) {
		find(hashed, prefix)
	}
}

// What the API server appends to a prefix that it truncates: see k8s.io/apiserver/pkg/storage/names.
const (
	randomLength = 5
	maxPrefix    = 63 - randomLength
)

func cutSuffix(name string) (prefix, suffix string) {
	n := strings.LastIndexByte(name, '-') + 1
	return name[:n], name[n:]
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// isGenerated reports whether s consists of the characters of k8s.io/apimachinery/pkg/util/rand.
func isGenerated(s string) bool {
	return s != "" && strings.Trim(s, "bcdfghjklmnpqrstvwxz2456789") == ""
}

// maxOwners bounds a chain of owners, which can be a cycle.
const maxOwners = 10
