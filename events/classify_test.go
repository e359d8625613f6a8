package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestClassify has a row for each line of the failure table, and for each error
// that a line names.
func TestClassify(t *testing.T) {
	const create, patch = "create", "patch"
	kind := eventsv1.SchemeGroupVersion.WithKind("Event").GroupKind()
	troubled := verdict{outcome: troubled}
	rejected := verdict{outcome: refused, reason: DropRejected}

	for _, tt := range []struct {
		name  string
		err   error
		verbs string // empty: the same for both
		want  verdict
	}{
		{name: "success", err: nil, want: verdict{outcome: written}},

		// Push-back.
		{name: "429", err: statusError(429, 0), want: verdict{outcome: pushedBack}},
		{name: "429 with Retry-After", err: statusError(429, 7), want: verdict{outcome: pushedBack, retryAfter: 7 * time.Second}},
		{name: "429 as client-go makes it", err: apierrors.NewTooManyRequests("slow down", 3), want: verdict{outcome: pushedBack, retryAfter: 3 * time.Second}},
		{name: "429 without details", err: &apierrors.StatusError{ErrStatus: metav1.Status{Code: 429}}, want: verdict{outcome: pushedBack}},
		{name: "429 with an endless Retry-After", err: statusError(429, math.MaxInt32), want: verdict{outcome: pushedBack, retryAfter: retryAfterMax}},
		{name: "429 with a Retry-After that overflowed", err: statusError(429, math.MinInt32), want: verdict{outcome: pushedBack}},
		{name: "503 with Retry-After", err: statusError(503, 9), want: verdict{outcome: pushedBack, retryAfter: 9 * time.Second}},
		{name: "503 with an endless Retry-After", err: statusError(503, math.MaxInt32), want: verdict{outcome: pushedBack, retryAfter: retryAfterMax}},

		// Trouble.
		{name: "503", err: statusError(503, 0), want: troubled},
		{name: "503 as client-go makes it", err: apierrors.NewServiceUnavailable("starting"), want: troubled},
		{name: "500", err: apierrors.NewInternalError(errors.New("etcd")), want: troubled},
		{name: "500 with Retry-After", err: apierrors.NewServerTimeout(eventResource, "create", 2), want: troubled},
		{name: "502", err: statusError(502, 0), want: troubled},
		{name: "504", err: apierrors.NewTimeoutError("etcd", 1), want: troubled},
		{name: "408", err: statusError(408, 0), want: troubled},
		{name: "status without a code", err: &apierrors.StatusError{}, want: troubled},
		{name: "unexpected object", err: &apierrors.UnexpectedObjectError{Object: &corev1.Pod{}}, want: troubled},
		{name: "deadline", err: context.DeadlineExceeded, want: troubled},
		{name: "cancelled", err: context.Canceled, want: troubled},
		{name: "timeout", err: urlError(os.ErrDeadlineExceeded), want: troubled},
		{name: "connection refused", err: urlError(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), want: troubled},
		{name: "connection reset", err: urlError(&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}), want: troubled},
		{name: "EOF", err: urlError(io.EOF), want: troubled},
		{name: "unexpected EOF", err: io.ErrUnexpectedEOF, want: troubled},
		{name: "no such host", err: urlError(&net.DNSError{Err: "no such host"}), want: troubled},
		{name: "anything else", err: errors.New("sink on fire"), want: troubled},

		// What has not come from an API server says nothing about Events.
		{name: "404 of a proxy", err: apierrors.NewGenericServerResponse(404, "post", eventResource, "", "default backend - 404", 0, true), want: troubled},

		// The Event is gone, or there before us.
		{name: "404", err: apierrors.NewNotFound(eventResource, "x"), verbs: patch, want: verdict{outcome: gone}},
		{name: "404", err: apierrors.NewNotFound(corev1.Resource("namespaces"), "ns"), verbs: create, want: verdict{outcome: refused, reason: DropNamespaceNotFound}},
		{name: "409 AlreadyExists", err: apierrors.NewAlreadyExists(eventResource, "x"), verbs: create, want: verdict{outcome: taken}},
		{name: "409 AlreadyExists", err: apierrors.NewAlreadyExists(eventResource, "x"), verbs: patch, want: verdict{outcome: changed}},
		{name: "409 Conflict", err: apierrors.NewConflict(eventResource, "x", errors.New("modified")), verbs: create, want: troubled},
		{name: "409 Conflict", err: apierrors.NewConflict(eventResource, "x", errors.New("modified")), verbs: patch, want: verdict{outcome: changed}},

		// Credentials and RBAC.
		{name: "401", err: apierrors.NewUnauthorized("expired"), want: verdict{outcome: denied}},
		{name: "403", err: apierrors.NewForbidden(eventResource, "x", errors.New("no")), want: verdict{outcome: denied}},
		{name: "403 NamespaceTerminating", err: namespaceTerminating(), want: verdict{outcome: refused, reason: DropNamespaceTerminating}},

		// Malformed.
		{name: "400", err: apierrors.NewBadRequest("no"), want: rejected},
		{name: "422", err: apierrors.NewInvalid(kind, "x", field.ErrorList{field.Required(field.NewPath("action"), "")}), want: rejected},
		{name: "413", err: apierrors.NewRequestEntityTooLargeError("3 MiB"), want: rejected},
		{name: "405", err: apierrors.NewMethodNotSupported(eventResource, "create"), want: rejected},
		{name: "410", err: apierrors.NewResourceExpired("no"), want: rejected},
		{name: "415", err: statusError(415, 0), want: rejected},
	} {
		for _, verb := range []string{create, patch} {
			if tt.verbs != "" && tt.verbs != verb {
				continue
			}
			t.Run(tt.name+" on "+verb, func(t *testing.T) {
				assert.Equal(t, tt.want, classify(tt.err, verb == create))
				if tt.err != nil {
					assert.Equal(t, tt.want, classify(fmt.Errorf("proxy: %w", tt.err), verb == create), "wrapped")
				}
			})
		}
	}
}

func TestOutcomesHaveNames(t *testing.T) {
	seen := make(map[string]bool)
	for o := range outcomes {
		assert.NotEmpty(t, o.String())
		assert.False(t, seen[o.String()], o.String())
		seen[o.String()] = true
	}
}

// statusError is an answer of the server with a code and, unless zero, a
// Retry-After.
func statusError(code int32, retryAfterSeconds int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    code,
		Message: fmt.Sprintf("server says %d", code),
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds},
	}}
}

// namespaceTerminating is what the NamespaceLifecycle admission plugin answers.
func namespaceTerminating() error {
	err := apierrors.NewForbidden(eventResource, "x", errors.New("namespace ns is being terminated"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: "namespace ns is being terminated",
		Field:   "metadata.namespace",
	})
	return err
}

func urlError(err error) error {
	return &url.Error{Op: http.MethodPost, URL: "https://10.0.0.1/apis/events.k8s.io/v1/namespaces/ns/events", Err: err}
}
