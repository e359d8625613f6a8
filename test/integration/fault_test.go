package integration

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// status answers like an API server, with a Status.
func status(code int, retryAfter string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		object := &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure,
			Message:  "scripted: " + http.StatusText(code),
			Code:     int32(code),
		}
		if seconds, err := strconv.Atoi(retryAfter); err == nil {
			object.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)}
		}
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		write(w, code, runtime.ContentTypeJSON, runtime.EncodeOrDie(scheme.Codecs.LegacyCodec(metav1.Unversioned), object))
	}
}

// page answers like a proxy, with HTML.
func page(code int, retryAfter string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		write(w, code, "text/html", fmt.Sprintf("<html><body><h1>%d %s</h1></body></html>", code, http.StatusText(code)))
	}
}

// retryAt is a Retry-After with the date that is so far ahead. It is made when
// the answer is.
func retryAt(ahead time.Duration, answer func(retryAfter string) fault) fault {
	return func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		answer(time.Now().Add(ahead).UTC().Format(http.TimeFormat))(w, r, server)
	}
}

// body answers with success and something that is not what was asked for.
func body(contentType, text string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		write(w, http.StatusOK, contentType, text)
	}
}

// reset resets the connection, and with it all other requests that are under way
// on it.
func reset(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	resetConnection(connectionOf(r))
	panic(http.ErrAbortHandler)
}

// abort ends the connection, or with HTTP/2 the stream, without an answer.
func abort(http.ResponseWriter, *http.Request, http.Handler) {
	panic(http.ErrAbortHandler)
}

// silence does not answer for as long as the client waits.
func silence(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	r.Context().Value(frontKey{}).(*front).swallowed.swallow(r)
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// done has the real server do what it was asked, and then does something else
// than answer what that did.
func done(answer fault) fault {
	return func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		carryOut(r, server)
		answer(w, r, server)
	}
}

// half has the real server do what it was asked, and ends in the middle of its
// answer the way that end does.
func half(end fault) fault {
	return func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		answer := carryOut(r, server)
		text := answer.Body.String()
		maps.Copy(w.Header(), answer.Header())
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.WriteHeader(answer.Code)
		_, _ = w.Write([]byte(text[:len(text)/2])) // the client may be gone
		_ = http.NewResponseController(w).Flush()
		end(w, r, server)
	}
}

// carryOut has a request carried out although its client may go away.
func carryOut(r *http.Request, server http.Handler) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
	return answer
}

func write(w http.ResponseWriter, code int, contentType, text string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // the client may be gone
}
