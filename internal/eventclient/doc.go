// Package eventclient sends the requests of an event sink. Each call sends one request at
// once: it bypasses the rate limiter of the client and does not retry. The broadcaster
// limits and retries requests itself, because it knows which ones matter most.
//
// # Usage
//
//	events := eventclient.New[*eventsv1.Event, *eventsv1.EventList](
//		clientset.EventsV1().RESTClient(), eventsv1.SchemeGroupVersion, "events")
//	event, err := events.Create(ctx, event.Namespace, event)
//
// # Guarantees
//
//   - Requests use the credentials, connections and transports of the client.
//   - Objects have the content type in which a typed client would send them: the
//     configured one, or protobuf by default. If the server rejects that with a 415, the
//     object and all later ones are sent as JSON. A merge patch is always JSON.
//   - Responses have the same content type, or JSON. Lists are protobuf if the server
//     supports it. The content of a list decides how it is read.
//   - A response of another type is an [apierrors.UnexpectedObjectError]. A response
//     with another object is an error. Other errors are those of client-go.
//   - A Retry-After header may contain a date as well as seconds.
//   - A [Client] is safe for concurrent use.
//
// # Limitations
//
//   - A fake clientset has no REST client. [New] returns nil for it.
//   - A client that is not a [restclient.RESTClient] keeps its content type, and its
//     transport reads only a Retry-After in seconds.
package eventclient
