package direct

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// roundTripper answers every request with a header.
type roundTripper http.Header

func (h roundTripper) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header(h).Clone(), Body: http.NoBody}, nil
}

func TestRetryAfterSeconds(t *testing.T) {
	date := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := func(d time.Duration) string { return date.Add(d).Format(http.TimeFormat) }
	for name, test := range map[string]struct{ retryAfter, date, want string }{
		"none":                 {"", in(0), ""},
		"seconds":              {"17", in(0), "17"},
		"a date":               {in(90 * time.Second), in(0), "90"},
		"a date that is past":  {in(-time.Hour), in(0), "0"},
		"a very late date":     {"Fri, 31 Dec 9999 23:59:59 GMT", in(0), "2147483647"},
		"a very early clock":   {in(0), "Mon, 01 Jan 0001 00:00:00 GMT", "2147483647"},
		"very many seconds":    {"1000000000", in(0), "1000000000"},
		"more than int32 has":  {"4294967301", in(0), "2147483647"},
		"more than int64 has":  {"99999999999999999999", in(0), "2147483647"},
		"less than nothing":    {"-1", in(0), "0"},
		"neither":              {"soon", in(0), "soon"},
		"a date, and no clock": {"Fri, 02 Jan 1970 00:00:00 GMT", "", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			if test.retryAfter != "" {
				header.Set("Retry-After", test.retryAfter)
			}
			if test.date != "" {
				header.Set("Date", test.date)
			}
			response, err := retryAfterSeconds{roundTripper(header)}.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, test.want, response.Header.Get("Retry-After"))
		})
	}
}
