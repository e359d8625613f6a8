// Package coreevents converts Events between events.k8s.io/v1 and core/v1, and writes
// Events through core/v1.
//
// Users import package compat, which exports this functionality. Package events needs
// it as well, for a name that client-go defines there, but must not import compat.
//
// # Usage
//
//	core := coreevents.ToCore(event)
//	sink := &coreevents.Sink{Interface: clientset.CoreV1()}
//	event, err := sink.Create(ctx, event)
//
// # Guarantees
//
//   - [ToCore] and [FromCore] are lossless, and copy their argument.
//   - [Sink] derives the deprecated fields from the new ones with each write; see
//     [ToCoreWithDeprecatedFields].
//   - Everything is safe for concurrent use.
//
// # Limitations
//
//   - [Sink.Patch] supports patches of metadata and series only.
package coreevents
