package direct

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// retryAfterSeconds is a transport that turns a Retry-After which is a date into
// one in seconds. RFC 9110 (10.2.3) allows both, proxies in front of API servers
// send both, and client-go reads seconds alone.
type retryAfterSeconds struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t retryAfterSeconds) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if at, err := http.ParseTime(response.Header.Get("Retry-After")); err == nil {
		// The server's idea of now, if it says it: its clock set the date.
		now, err := http.ParseTime(response.Header.Get("Date"))
		if err != nil {
			now = time.Now()
		}
		seconds := max(math.Ceil(at.Sub(now).Seconds()), 0)
		response.Header.Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	return response, nil
}
