// Package fakeapi provides an in-memory API server for Events of events.k8s.io/v1.
//
// A [Server] has the methods of a sink and of a lister, and answers like
// kube-apiserver: with the same checks, the same error codes and the same fields.
// Package eventstest exports it to users. The tests of this project use it directly:
//
//   - [Server.Before] scripts errors, delays and hanging requests, and [Server.After]
//     loses responses.
//   - [Server.Put] and [Server.Delete] act like somebody else: they change Events
//     without the checks that clients have to pass.
//   - [Server.OnChange] sees every change of an Event, in order. [Audit] uses it to find
//     what a recorder must never do.
//
// A Server is deterministic. The first change has resourceVersion 1, the next one 2,
// and so on; UIDs and generated names are numbered, too.
//
// The package imports no other package of this project, so that the internal tests of
// any package can use it.
package fakeapi
