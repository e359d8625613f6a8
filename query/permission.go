package query

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PermissionError says that the server denies a request. It wraps the error of the
// server, so apierrors.IsForbidden recognizes it.
type PermissionError struct {
	// Verb, Group, and Resource are what a role must permit, such as list,
	// events.k8s.io, and events. For Events, core/v1 suffices as well.
	Verb, Group, Resource string
	// Namespace is the namespace of the request; empty for all namespaces, or for a
	// cluster-scoped object.
	Namespace string
	// Err is the error of the server.
	Err error
}

// Error returns the missing permission on one line.
func (e *PermissionError) Error() string {
	resource := schema.GroupResource{Group: e.Group, Resource: e.Resource}
	return fmt.Sprintf("query: missing permission to %s %s in %s: %v", e.Verb, resource, where(e.Namespace), e.Err)
}

// Unwrap returns the error of the server.
func (e *PermissionError) Unwrap() error { return e.Err }
