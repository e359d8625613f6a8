package eventclient

import (
	"fmt"
	"io"
	"net/http"
)

// A response is read into memory, and compressed ones can be a thousand times as long as what was
// sent. etcd stores objects of up to 1.5 MiB. A page of 500 Events has 1 MiB.
const (
	maxObject = 2 << 20
	maxPage   = 16 << 20
)

// bounded is a transport that bounds the bodies of responses: reading a longer one returns an error.
type bounded struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil {
		return response, err
	}
	limit := maxObject
	if request.Method == http.MethodGet {
		limit = maxPage
	}
	response.Body = &boundedBody{response.Body, limit, limit}
	return response, nil
}

type boundedBody struct {
	io.ReadCloser
	left, limit int
}

func (b *boundedBody) Read(p []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		b.left = 0
		return 0, fmt.Errorf("eventclient: response with more than %d bytes", b.limit)
	}
	return n, err
}
