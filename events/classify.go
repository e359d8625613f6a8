package events

import (
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outcome is what became of a request to the sink.
type outcome uint8

const (
	// written: the server has taken it.
	written outcome = iota
	// pushedBack: the server wants everybody to slow down.
	pushedBack
	// troubled: this request did not get through; nobody knows how far it came.
	troubled
	// denied: credentials or RBAC are not there, or not there yet.
	denied
	// gone: the Event that was to be patched is not there.
	gone
	// changed: the Event that was to be patched is not as it was.
	changed
	// taken: an Event of the name that was to be created is there.
	taken
	// refused: the server does not want it and never will.
	refused
	outcomes
)

var outcomeNames = [outcomes]string{"written", "pushedBack", "troubled", "denied", "gone", "changed", "taken", "refused"}

// String returns the name of the outcome.
func (o outcome) String() string { return outcomeNames[o] }

// verdict is what the answer of the sink means for a write.
type verdict struct {
	outcome outcome
	// retryAfter is how long the server wants to be left alone, zero if it did
	// not say.
	retryAfter time.Duration
	// reason is why the write is dropped, if it was refused.
	reason DropReason
}

// classify says what the answer of the sink to a create, or else to a patch,
// means. It is the only place that knows errors.
func classify(err error, creates bool) verdict {
	if err == nil {
		return verdict{outcome: written}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		// Refused, reset, timed out, cut off, not understood: all that does not
		// come from a server that understood what was asked.
		return verdict{outcome: troubled}
	}

	s := status.Status()
	var retryAfter time.Duration
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		retryAfter = min(time.Duration(s.Details.RetryAfterSeconds)*time.Second, retryAfterMax)
	}
	switch {
	case s.Code == http.StatusTooManyRequests:
		return verdict{outcome: pushedBack, retryAfter: retryAfter}
	case s.Code == http.StatusServiceUnavailable && retryAfter > 0:
		return verdict{outcome: pushedBack, retryAfter: retryAfter}
	case s.Code == http.StatusRequestTimeout || s.Code >= 500 || s.Code < 400:
		return verdict{outcome: troubled}
	case s.Code == http.StatusForbidden && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return verdict{outcome: refused, reason: DropNamespaceTerminating}
	case s.Code == http.StatusUnauthorized || s.Code == http.StatusForbidden:
		return verdict{outcome: denied}
	case s.Code == http.StatusNotFound && apierrors.IsUnexpectedServerError(err):
		// No API server says it like that. It is a proxy that does not find one, or
		// a server that does not have the API.
		return verdict{outcome: troubled}
	case s.Code == http.StatusNotFound && !creates:
		return verdict{outcome: gone}
	case s.Code == http.StatusNotFound:
		return verdict{outcome: refused, reason: DropNamespaceNotFound}
	case s.Code == http.StatusConflict && creates && s.Reason == metav1.StatusReasonAlreadyExists:
		return verdict{outcome: taken}
	case s.Code == http.StatusConflict && !creates:
		return verdict{outcome: changed}
	case s.Code == http.StatusConflict:
		return verdict{outcome: troubled}
	default:
		return verdict{outcome: refused, reason: DropRejected}
	}
}
