// Package eventclienttest provides an HTTP transport for tests of packages that send requests
// to the API server.
//
// # Usage
//
//	tr := &eventclienttest.Transport{Body: `{"apiVersion":"v1","kind":"Event"}`}
//	client, err := typedcorev1.NewForConfigAndClient(eventclienttest.Config(), &http.Client{Transport: tr})
//
// # Limitations
//
//   - A [Transport] is not safe for concurrent use.
package eventclienttest

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
)

// Config returns the configuration of a client whose rate limiter delays the second request
// for hours. A test that does not hang shows that the requests bypass it.
func Config() *restclient.Config {
	return &restclient.Config{Host: "http://server", QPS: 0.0001, Burst: 1}
}

// Transport records requests and responds to them without a network. The zero value
// responds with 200 and an empty body.
type Transport struct {
	// Code, Header and Body are the response. The content type is JSON.
	Code   int
	Header http.Header
	Body   string

	// Respond, if set, returns the code and the body of the response instead.
	Respond func(*http.Request) (code int, body string)

	// Requests contains the method, URI, content type and body of each request, separated
	// by spaces. A body in protobuf is converted to JSON. Accepted contains the Accept header of each request.
	Requests, Accepted []string
}

// RoundTrip implements [http.RoundTripper].
func (tr *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var data []byte
	if req.Body != nil {
		var err error
		if data, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	contentType := req.Header.Get("Content-Type")
	if contentType == runtime.ContentTypeProtobuf {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			return nil, err
		}
		if data, err = json.Marshal(object); err != nil {
			return nil, err
		}
	}
	request := []string{req.Method, req.URL.RequestURI(), contentType, string(data)}
	tr.Requests = append(tr.Requests, strings.TrimSpace(strings.Join(request, " ")))
	tr.Accepted = append(tr.Accepted, req.Header.Get("Accept"))
	code, body := cmp.Or(tr.Code, http.StatusOK), tr.Body
	if tr.Respond != nil {
		code, body = tr.Respond(req)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	maps.Copy(header, tr.Header)
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}
