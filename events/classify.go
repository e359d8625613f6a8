package events

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/eventclient"
	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/internal/tracker"
)

// classify returns what the response of the sink to a create or a list, or else to a patch, means.
func classify(err error, creates bool) tracker.Response {
	if err == nil {
		return tracker.Response{Outcome: schedule.Written}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		// The connection failed, a timeout passed, or the response makes no sense.
		var op *net.OpError
		outcome := schedule.Troubled
		if isLocal(err) {
			outcome = schedule.Refused
		}
		return tracker.Response{Outcome: outcome, MayBeStored: !errors.As(err, &op) || op.Op != "dial"}
	}

	s := status.Status()
	r := tracker.Response{Outcome: schedule.Refused}
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		r.Pause = time.Duration(s.Details.RetryAfterSeconds) * time.Second
	}
	switch {
	case s.Code == http.StatusTooManyRequests, s.Code == http.StatusServiceUnavailable && r.Pause > 0:
		r.Outcome = schedule.PushedBack
	case s.Code == http.StatusForbidden && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		r.Never = tracker.DropNamespaceTerminating
	case s.Code == http.StatusUnauthorized, s.Code == http.StatusForbidden:
		r.Outcome = schedule.Denied
	case s.Code == http.StatusRequestTimeout, s.Code >= 500, s.Code < 400, apierrors.IsUnexpectedServerError(err),
		s.Code == http.StatusConflict && creates && s.Reason != metav1.StatusReasonAlreadyExists:
		// Without a Status, which is unexpected, the response comes from a proxy, or from a server that
		// does not serve the API.
		r.Outcome, r.MayBeStored = schedule.Troubled, true
	case s.Code == http.StatusNotFound && !creates:
		r.Outcome = schedule.Gone
	case s.Code == http.StatusNotFound:
		r.Never = tracker.DropNamespaceNotFound
	case s.Code == http.StatusConflict && creates:
		r.Outcome = schedule.Taken
	case s.Code == http.StatusConflict:
		r.Outcome = schedule.Changed
	}
	return r
}

// isLocal reports whether neither a server nor a network is the cause of an error that is no answer. It
// can be permanent: a client for one namespace returns it for each Event in another one.
func isLocal(err error) bool {
	// net.Error are also the errors of connections, timeouts, and of package syscall.
	if errors.As(err, new(*apierrors.UnexpectedObjectError)) || errors.As(err, new(net.Error)) || eventclient.IsRequestError(err) {
		return false
	}
	others := []error{context.Canceled, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed}
	return !slices.ContainsFunc(others, func(other error) bool { return errors.Is(err, other) })
}
