// Package apigroup converts Events between events.k8s.io/v1 and core/v1, and writes
// Events through core/v1, or through the group that the server permits.
//
// Users import package compat, which exports this functionality. Package events needs
// it as well, for a name that client-go defines there, but must not import compat.
//
// # Usage
//
//	core := apigroup.ToCore(event)
//	sink := &apigroup.CoreSink{Interface: clientset.CoreV1()}
//	event, err := sink.Create(ctx, event)
//
// [Fallback] begins with core/v1:
//
//	sink := &apigroup.Fallback{Events: &events.EventSinkImpl{Interface: clientset.EventsV1()}, Core: sink}
//
// # Guarantees
//
//   - [ToCore] and [FromCore] are lossless, and copy their argument.
//   - [CoreSink] derives the deprecated fields and the message from the new ones with each
//     write, and stores eventTime in an annotation.
//   - [Fallback] returns a 403, or a 404 without an object, only if both groups respond like this, or have
//     done so up to 5 minutes before.
//   - Everything is safe for concurrent use.
//
// # Limitations
//
//   - [CoreSink.Patch] supports patches of metadata and series only.
package apigroup
