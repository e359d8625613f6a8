package query

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// Owners follows owner references, such as those from a Pod to its ReplicaSet and its
// Deployment.
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
// objects: ReplicaSet, StatefulSet, DaemonSet, Job, Pod, PersistentVolumeClaim, and so on.
func DefaultDependents() []schema.GroupVersionKind { return nil }

// Follow returns object with its UID, then its owners and theirs, and then its dependents and
// theirs, for [Query.Objects]. Each one is selected by its UID.
//
// It needs the permissions to get object and its owners, and to list dependents. It
// returns what it finds without them, and a [*PermissionError] for each one that is missing,
// or another error if a request fails. The objects are usable even if there are errors:
// the first one is always object.
func (o *Owners) Follow(ctx context.Context, object Object) (objects []Object, errs []error) {
	return []Object{object}, nil
}
