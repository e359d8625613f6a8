package eventclient

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"
)

// maxBody is the length of the longest response. A response is read into memory, and a compressed one can be
// a thousand times as long as what was sent. A page of 500 Events has 1 MiB; a server that has no pages sends
// more. No object is as long, so what is longer is no response of an API server.
const maxBody = 16 << 20

// transport bounds the bodies of responses: to read a longer one is an error. It also converts
// Retry-After headers to seconds that client-go can read, which ignores the dates that proxies send (RFC
// 9110, 10.2.3), and truncates seconds to an int32.
type transport struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil {
		return response, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxBody)
	if seconds, ok := parseRetryAfter(response.Header); ok {
		seconds = min(max(math.Ceil(seconds), 0), math.MaxInt32)
		response.Header.Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	return response, nil
}

// parseRetryAfter returns the Retry-After of a response in seconds. ok is false if there is none.
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
