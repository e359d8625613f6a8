package query

import (
	"context"
	"fmt"

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
	// Dependents are the kinds in which to search dependents. If nil, they are
	// [DefaultDependents].
	Dependents []schema.GroupVersionKind
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

// Follow returns object with its UID, then its owners and theirs, and then its
// dependents and theirs, for [Query.Objects]. Each one is selected by its UID. A mirror
// Pod is followed by the static Pod of the same name, because the kubelet refers to that
// one by another UID. The object requires a kind and a name, and a namespace unless it is
// cluster-scoped.
//
// It needs the permissions to get the object and its owners, and to list dependents.
// Without them, it returns what it finds, and a [*PermissionError] for each one that is
// missing. The errors do not make the objects wrong, only incomplete: the first one is
// always object, without a UID if it does not exist.
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

	dependents, listErrs := o.dependents(ctx, found)
	for down := []types.UID{found.UID}; len(down) > 0; down = down[1:] {
		for _, dependent := range dependents[down[0]] {
			if add(dependent) {
				down = append(down, dependent.UID)
			}
		}
	}
	return objects, append(errs, listErrs...)
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

// dependents returns the objects with owners, by owner: those in the namespace of
// object, or in all namespaces if it is cluster-scoped.
func (o *Owners) dependents(ctx context.Context, object *metav1.PartialObjectMetadata) (byOwner map[types.UID][]Object, errs []error) {
	byOwner = make(map[types.UID][]Object)
	errs = o.eachDependent(ctx, object.Namespace, func(kind schema.GroupVersionKind, m *metav1.PartialObjectMetadata) {
		for _, ref := range m.OwnerReferences {
			dependent := Object{
				APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: m.Name, UID: m.UID,
				Namespace: m.Namespace, ClusterScoped: m.Namespace == "",
			}
			byOwner[ref.UID] = append(append(byOwner[ref.UID], dependent), mirrored(dependent, m)...)
		}
	})
	return byOwner, errs
}

// eachDependent visits the metadata of all objects of the kinds in Dependents in a namespace.
func (o *Owners) eachDependent(ctx context.Context, namespace string, visit func(schema.GroupVersionKind, *metav1.PartialObjectMetadata)) (errs []error) {
	kinds := o.Dependents
	if kinds == nil {
		kinds = DefaultDependents()
	}
	for _, kind := range kinds {
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

// Roots are the topmost owners of objects: the Deployment of a Pod. Create them with
// [Owners.Roots].
type Roots struct {
	byUID  map[types.UID]owned
	byName map[Object]types.UID // of the current object; the key has a kind, a namespace, and a name
}

// owned is an object and its controller.
type owned struct {
	object     Object
	controller *metav1.OwnerReference // nil if it has none
}

// Roots lists the objects of the kinds in Dependents in a namespace, or in all of them if it is
// empty, to find the owners of any object of these kinds. Without the permission to list one of
// them, it returns what it finds, and a [*PermissionError] for each one that is missing.
func (o *Owners) Roots(ctx context.Context, namespace string) (*Roots, []error) {
	r := &Roots{byUID: make(map[types.UID]owned), byName: make(map[Object]types.UID)}
	errs := o.eachDependent(ctx, namespace, func(kind schema.GroupVersionKind, m *metav1.PartialObjectMetadata) {
		object := Object{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: m.Namespace, Name: m.Name, UID: m.UID}
		r.byUID[m.UID] = owned{object, metav1.GetControllerOf(m)}
		r.byName[plain(object)] = m.UID
	})
	return r, errs
}

// Of returns the topmost owner of the object of a reference, which is the object itself if it has
// none. ok is false if the object does not exist, or is of another kind.
func (r *Roots) Of(ref series.Reference) (root Object, ok bool) {
	uid := ref.UID
	if _, known := r.byUID[uid]; !known {
		uid = r.byName[plain(ObjectOf(ref))]
	}
	o, ok := r.byUID[uid]
	if !ok {
		return Object{}, false
	}
	for range maxOwners {
		if o.controller == nil {
			break
		}
		next, known := r.byUID[o.controller.UID]
		if !known {
			c := o.controller
			return Object{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: o.object.Namespace, Name: c.Name, UID: c.UID}, true
		}
		o = next
	}
	return o.object, true
}

// maxOwners bounds a chain of owners, which can be a cycle.
const maxOwners = 10
