package main

import (
	"net/http"
	"sync/atomic"
)

// requests counts the requests that pass through a client. It may be used
// concurrently; the zero value is ready to use.
type requests struct{ creates, patches, others atomic.Int64 }

// calls is how many requests there were, by their verbs.
type calls struct{ creates, patches, others int }

func (c calls) total() int { return c.creates + c.patches + c.others }

// wrap returns a transport that counts and passes on to next. It has the form
// that rest.Config.Wrap takes.
func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		switch request.Method {
		case http.MethodPost:
			r.creates.Add(1)
		case http.MethodPatch:
			r.patches.Add(1)
		default:
			r.others.Add(1)
		}
		return next.RoundTrip(request)
	})
}

func (r *requests) calls() calls {
	return calls{
		creates: int(r.creates.Load()),
		patches: int(r.patches.Load()),
		others:  int(r.others.Load()),
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
