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

	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/internal/tracker"
)

// TestClassify has a row for each line of the failure table, and for each error in
// that line.
func TestClassify(t *testing.T) {
	const create, patch = "create", "patch"
	kind := eventsv1.SchemeGroupVersion.WithKind("Event").GroupKind()
	inTrouble := tracker.Response{Outcome: schedule.Troubled, MayBeStored: true}
	local := tracker.Response{Outcome: schedule.Refused, MayBeStored: true}
	rejected := tracker.Response{Outcome: schedule.Refused}

	for _, tt := range []struct {
		name  string
		err   error
		verbs string // empty: the same for both
		want  tracker.Response
	}{
		{name: "success", err: nil, want: tracker.Response{Outcome: schedule.Written}},

		// Push-back.
		{name: "429", err: statusError(429, 0), want: tracker.Response{Outcome: schedule.PushedBack}},
		{name: "429 with Retry-After", err: statusError(429, 7), want: tracker.Response{Outcome: schedule.PushedBack, Pause: 7 * time.Second}},
		{name: "429 as client-go makes it", err: apierrors.NewTooManyRequests("slow down", 3), want: tracker.Response{Outcome: schedule.PushedBack, Pause: 3 * time.Second}},
		{name: "429 without details", err: &apierrors.StatusError{ErrStatus: metav1.Status{Code: 429}}, want: tracker.Response{Outcome: schedule.PushedBack}},
		{name: "429 with an endless Retry-After", err: statusError(429, math.MaxInt32), want: tracker.Response{Outcome: schedule.PushedBack, Pause: math.MaxInt32 * time.Second}},
		{name: "429 with a Retry-After that overflowed", err: statusError(429, math.MinInt32), want: tracker.Response{Outcome: schedule.PushedBack}},
		{name: "503 with Retry-After", err: statusError(503, 9), want: tracker.Response{Outcome: schedule.PushedBack, Pause: 9 * time.Second}},
		{name: "503 with an endless Retry-After", err: statusError(503, math.MaxInt32), want: tracker.Response{Outcome: schedule.PushedBack, Pause: math.MaxInt32 * time.Second}},

		// Trouble.
		{name: "503", err: statusError(503, 0), want: inTrouble},
		{name: "503 as client-go makes it", err: apierrors.NewServiceUnavailable("starting"), want: inTrouble},
		{name: "500", err: apierrors.NewInternalError(errors.New("etcd")), want: inTrouble},
		{name: "500 with Retry-After", err: apierrors.NewServerTimeout(eventResource, "create", 2), want: tracker.Response{Outcome: schedule.Troubled, MayBeStored: true, Pause: 2 * time.Second}},
		{name: "502", err: statusError(502, 0), want: inTrouble},
		{name: "504", err: apierrors.NewTimeoutError("etcd", 1), want: tracker.Response{Outcome: schedule.Troubled, MayBeStored: true, Pause: time.Second}},
		{name: "408", err: statusError(408, 0), want: inTrouble},
		{name: "status without a code", err: &apierrors.StatusError{}, want: inTrouble},
		{name: "unexpected object", err: &apierrors.UnexpectedObjectError{Object: &corev1.Pod{}}, want: inTrouble},
		{name: "deadline", err: context.DeadlineExceeded, want: inTrouble},
		{name: "cancelled", err: context.Canceled, want: inTrouble},
		{name: "timeout", err: urlError(os.ErrDeadlineExceeded), want: inTrouble},
		{name: "connection refused", err: urlError(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), want: tracker.Response{Outcome: schedule.Troubled}},
		{name: "connection reset", err: urlError(&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}), want: inTrouble},
		{name: "EOF", err: urlError(io.EOF), want: inTrouble},
		{name: "unexpected EOF", err: io.ErrUnexpectedEOF, want: inTrouble},
		{name: "no such host", err: urlError(&net.DNSError{Err: "no such host"}), want: inTrouble},
		{name: "anything else", err: errors.New("sink on fire"), want: local},

		// The response does not come from an API server.
		{name: "404 of a proxy", err: apierrors.NewGenericServerResponse(404, "post", eventResource, "", "default backend - 404", 0, true), want: inTrouble},

		// The Event is gone, or exists already.
		{name: "404", err: apierrors.NewNotFound(eventResource, "x"), verbs: patch, want: tracker.Response{Outcome: schedule.Gone}},
		{name: "404", err: apierrors.NewNotFound(corev1.Resource("namespaces"), "ns"), verbs: create, want: tracker.Response{Outcome: schedule.Refused, Never: tracker.DropNamespaceNotFound}},
		{name: "409 AlreadyExists", err: apierrors.NewAlreadyExists(eventResource, "x"), verbs: create, want: tracker.Response{Outcome: schedule.Taken}},
		{name: "409 AlreadyExists", err: apierrors.NewAlreadyExists(eventResource, "x"), verbs: patch, want: tracker.Response{Outcome: schedule.Changed}},
		{name: "409 Conflict", err: apierrors.NewConflict(eventResource, "x", errors.New("modified")), verbs: create, want: inTrouble},
		{name: "409 Conflict", err: apierrors.NewConflict(eventResource, "x", errors.New("modified")), verbs: patch, want: tracker.Response{Outcome: schedule.Changed}},

		// Credentials and RBAC.
		{name: "401", err: apierrors.NewUnauthorized("expired"), want: tracker.Response{Outcome: schedule.Denied}},
		{name: "403", err: apierrors.NewForbidden(eventResource, "x", errors.New("no")), want: tracker.Response{Outcome: schedule.Denied}},
		{name: "403 NamespaceTerminating", err: namespaceTerminating(), want: tracker.Response{Outcome: schedule.Refused, Never: tracker.DropNamespaceTerminating}},

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

// statusError is a response with a code and, unless zero, a Retry-After.
func statusError(code int32, retryAfterSeconds int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    code,
		Message: fmt.Sprintf("server says %d", code),
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds},
	}}
}

// namespaceTerminating is the response of the NamespaceLifecycle admission plugin.
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
