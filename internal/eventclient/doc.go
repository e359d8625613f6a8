// Package eventclient is the typed client of the event sinks. Unlike client-go's, it sends one request
// per call, at once: it ignores the rate limiter of the client that it is made from, and does not retry.
// The broadcaster limits and retries requests itself, because it knows which ones matter most.
//
// # Guarantees
//
//   - Requests use the credentials, connections and transports of the given client.
//   - Events are sent in protobuf. If the server rejects that with a 415, the Event and all later ones
//     are sent as JSON. A merge patch is always JSON. Responses are protobuf if possible.
//   - A response of another type is an [apierrors.UnexpectedObjectError]. A response with another object
//     is an error. Other errors are those of client-go.
//   - A Retry-After header counts, with seconds or a date, also beside a Status.
//   - A response with more than 16 MiB, or a page whose Events take more memory, is an error.
//   - Warnings are ignored, because a webhook can warn of each heartbeat.
//
// Without a [restclient.RESTClient], responses have no bound, and Retry-After contains only seconds.
package eventclient
