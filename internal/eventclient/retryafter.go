package eventclient

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"
)

// retryAfterSeconds is a transport that converts Retry-After headers to seconds that
// client-go can read. RFC 9110 (10.2.3) also allows dates, which proxies send, but
// client-go ignores them. It also truncates seconds to an int32, so retryAfterSeconds
// caps them at the maximum.
type retryAfterSeconds struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t retryAfterSeconds) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if seconds, ok := parseRetryAfter(response.Header); ok {
		seconds = min(max(math.Ceil(seconds), 0), math.MaxInt32)
		response.Header.Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	return response, nil
}

// parseRetryAfter returns the Retry-After of a response in seconds. ok is false if it is
// missing or malformed.
func parseRetryAfter(header http.Header) (seconds float64, ok bool) {
	retryAfter := header.Get("Retry-After")
	if n, err := strconv.ParseInt(retryAfter, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return float64(n), true
	}
	at, err := http.ParseTime(retryAfter)
	if err != nil {
		return 0, false
	}
	// The date is relative to the server's clock.
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return at.Sub(now).Seconds(), true
}
