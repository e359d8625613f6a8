// Package direct makes the requests of a sink. They go to the API server at
// once, one for each call: they do not wait for the rate limiter of the client
// they are made with, and what fails is not tried again. A broadcaster does both
// itself, since it knows what waits and what is worth it.
//
// # Usage
//
//	events := direct.NewResource[*eventsv1.Event, *eventsv1.EventList](
//		clientset.EventsV1().RESTClient(), eventsv1.SchemeGroupVersion, "events")
//	event, err := events.Create(ctx, event.Namespace, event)
//
// # Guarantees
//
//   - The credentials, the connections and the transports of the client are used.
//   - Bodies are JSON, whatever content type the client is configured for: a merge
//     patch is JSON anyway, and proxies and people can read it.
//   - An answer of another type is an error, an *errors.UnexpectedObjectError of
//     k8s.io/apimachinery; one about another object is an error. Otherwise errors are
//     those of client-go.
//   - A Retry-After that is a date is understood as one in seconds is.
//
// # Limitations
//
//   - A fake clientset has no REST client. There is no Resource for one.
package direct
