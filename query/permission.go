package query

import "fmt"

// PermissionError says that the server denies a request. It wraps the error of the
// server, so apierrors.IsForbidden recognizes it.
type PermissionError struct {
	// Verb, Group, and Resource are what a role must permit, such as list, events.k8s.io, and events.
	Verb, Group, Resource string
	// Namespace is the namespace of the request; empty for all namespaces.
	Namespace string
	// Err is the error of the server.
	Err error
}

// Error returns the missing permission on one line.
func (e *PermissionError) Error() string { return fmt.Sprintf("query: %v", e.Err) }

// Unwrap returns the error of the server.
func (e *PermissionError) Unwrap() error { return e.Err }
