package events

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// retryAfterMax limits for how long the recorder makes no request because the server asks
// for that. A server that asks for more probably means minutes.
const retryAfterMax = time.Hour

// classify returns what the response of the sink to a create or a list, or else to a
// patch, means.
func classify(err error, creates bool) tracker.Result {
	if err == nil {
		return tracker.Result{Outcome: tracker.Written}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		// The connection failed, a timeout passed, or the response makes no sense.
		var op *net.OpError
		return tracker.Result{Outcome: tracker.Troubled, Unsent: isHeld(err) || errors.As(err, &op) && op.Op == "dial"}
	}

	s := status.Status()
	var retryAfter time.Duration
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		retryAfter = min(time.Duration(s.Details.RetryAfterSeconds)*time.Second, retryAfterMax)
	}
	outcome := tracker.Refused
	reason := DropRejected
	switch {
	case s.Code == http.StatusTooManyRequests, s.Code == http.StatusServiceUnavailable && retryAfter > 0:
		outcome = tracker.PushedBack
	case s.Code == http.StatusRequestTimeout, s.Code >= 500, s.Code < 400:
		outcome = tracker.Troubled
	case s.Code == http.StatusForbidden && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		reason = DropNamespaceTerminating
	case s.Code == http.StatusUnauthorized, s.Code == http.StatusForbidden:
		outcome = tracker.Denied
	case apierrors.IsUnexpectedServerError(err):
		// Without a Status, the response comes from a proxy, or from a server that does not
		// serve the API.
		outcome = tracker.Troubled
	case s.Code == http.StatusNotFound && !creates:
		outcome = tracker.Gone
	case s.Code == http.StatusNotFound:
		reason = DropNamespaceNotFound
	case s.Code == http.StatusConflict && creates && s.Reason == metav1.StatusReasonAlreadyExists:
		outcome = tracker.Taken
	case s.Code == http.StatusConflict && !creates:
		outcome = tracker.Changed
	case s.Code == http.StatusConflict:
		outcome = tracker.Troubled
	}
	result := tracker.Result{Outcome: outcome, RetryAfter: retryAfter}
	if outcome == tracker.Refused {
		result.Reason = tracker.DropReason(reason)
	}
	return result
}

// isOfClient reports whether a sink has returned an error of which no server and no network is
// the cause. It can be permanent: a client for one namespace returns it for each Event in another
// one.
func isOfClient(err error) bool {
	var status apierrors.APIStatus
	var response *apierrors.UnexpectedObjectError
	var network net.Error // also the errors of connections, timeouts, and of package syscall
	switch {
	case err == nil, errors.As(err, &status), errors.As(err, &response), errors.As(err, &network):
		return false
	}
	for _, other := range []error{context.Canceled, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, errExited, errPanicked} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}

// verdicts are what earlier responses of a sink say about later ones: whether a namespace has
// existed, and which Events, or all of a namespace, the client cannot send. They can be used
// concurrently.
type verdicts struct {
	ttl time.Duration // Options.EventTTL

	mu  sync.Mutex
	all map[place]*verdict
}

// place is the Event of a key, or with the zero key, a namespace.
type place struct {
	namespace string
	key       series.Key
}

// verdict is what is known of a place.
type verdict struct {
	existed time.Time // when there was an Event in the namespace, or it was terminating

	// Errors of the client in a row. After freeErrors, one request at a time probes whether
	// there is another one. A namespace has none while it has an Event.
	errors int
	latest error
	until  time.Time // when the next request may probe
	probes bool      // one does, or has done so until its timeout
}

// With these limits, what the client cannot send takes at most 10 calls of the sink in three
// hours, and what it cannot send for 20 minutes is not lost.
const (
	freeErrors    = 2
	maxErrors     = 6 // when the Event is dropped
	heldFirst     = time.Minute
	heldMost      = 10 * time.Minute
	heldIfDropped = time.Hour
)

// maxVerdicts bounds how many places are remembered. If there are more, all are forgotten, and
// learned again.
const maxVerdicts = 10_000

// of returns the verdict on a place.
func (v *verdicts) of(p place) *verdict {
	is := v.all[p]
	if is == nil {
		if v.all == nil || len(v.all) >= maxVerdicts {
			v.all = make(map[place]*verdict)
		}
		is = &verdict{}
		v.all[p] = is
	}
	return is
}

// exists records that a namespace has an Event.
func (v *verdicts) exists(namespace string, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.of(place{namespace: namespace}).existed = now
}

// heldError is the error of a request that is held back: the latest error of the sink.
type heldError struct{ error }

// Unwrap returns the error of the sink.
func (e heldError) Unwrap() error { return e.error }

func isHeld(err error) bool { return errors.As(err, new(heldError)) }

// held returns the error of a write that is not to be sent now, or nil.
func (v *verdicts) held(w *tracker.Write, now time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range placesOf(w) {
		if is := v.all[p]; is != nil && is.errors >= freeErrors && now.Before(is.until) {
			return heldError{is.latest}
		}
	}
	for _, p := range placesOf(w) {
		if is := v.all[p]; is != nil && is.errors >= freeErrors {
			is.probes, is.until = true, now.Add(requestTimeout)
		}
	}
	return nil
}

func placesOf(w *tracker.Write) [2]place {
	return [...]place{{w.Series.Namespace, w.Series.Key}, {namespace: w.Series.Namespace}}
}

// judge returns what a response means after those before. err is that of the sink or of held.
func (v *verdicts) judge(w *tracker.Write, result tracker.Result, err error, now time.Time) tracker.Result {
	v.mu.Lock()
	defer v.mu.Unlock()
	namespace := v.of(place{namespace: w.Series.Namespace})
	existed := now.Sub(namespace.existed) < v.ttl
	switch reason := DropReason(result.Reason); {
	case result.Outcome == tracker.Written, reason == DropNamespaceTerminating:
		namespace.existed = now
	case reason == DropNamespaceNotFound && (existed || w.Kind == tracker.Recreate):
		// The namespace was deleted, while a controller emits events about what was in it.
		result.Reason = tracker.DropReason(DropNamespaceTerminating)
	}
	if result.Outcome == tracker.Troubled && !isOfClient(err) || result.Outcome == tracker.PushedBack {
		return result
	}
	for i, p := range placesOf(w) {
		is := v.all[p]
		switch {
		case isOfClient(err):
			if isNamespace := i == 1; !isHeld(err) && !(isNamespace && existed) {
				is = v.of(p)
				is.failed(err, now)
			}
			switch {
			case is == nil || is.errors < maxErrors:
			case w.Kind == tracker.Look:
				result.Outcome = tracker.Gone // it cannot be read, so nothing may wait for it
			default:
				result.Outcome, result.Reason = tracker.Refused, tracker.DropReason(DropRejected)
			}
		case i == 0:
			delete(v.all, p)
		case is != nil:
			is.errors = 0
		}
	}
	return result
}

// failed records an error of the client, unless its request was sent before others were held.
func (is *verdict) failed(err error, now time.Time) {
	if is.errors >= freeErrors && !is.probes {
		return
	}
	is.errors++
	is.latest, is.probes = err, false
	is.until = now.Add(min(heldFirst<<(2*max(is.errors-freeErrors, 0)), heldMost))
	if is.errors >= maxErrors {
		is.errors, is.until = maxErrors, now.Add(heldIfDropped)
	}
}
