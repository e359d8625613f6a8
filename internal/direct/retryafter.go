package direct

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"
)

// retryAfterSeconds is a transport that turns a Retry-After which is a date into
// one in seconds. RFC 9110 (10.2.3) allows both, proxies in front of API servers
// send both, and client-go reads seconds alone, and cuts off what an int32 has no room for.
type retryAfterSeconds struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t retryAfterSeconds) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if seconds, ok := secondsOf(response.Header); ok {
		seconds = min(max(math.Ceil(seconds), 0), math.MaxInt32)
		response.Header.Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	return response, nil
}

// secondsOf returns what the Retry-After of an answer comes to. ok is false if
// there is none, or none that can be understood.
func secondsOf(header http.Header) (seconds float64, ok bool) {
	retryAfter := header.Get("Retry-After")
	if n, err := strconv.ParseInt(retryAfter, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return float64(n), true
	}
	at, err := http.ParseTime(retryAfter)
	if err != nil {
		return 0, false
	}
	// The server's idea of now, if it says it: its clock set the date.
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return at.Sub(now).Seconds(), true
}
