// Package knative gives the reconcilers that knative generates recorders of series. No
// generated file changes, and this package does not import knative.
//
// A generated controller takes the recorder of its context, and creates a broadcaster of
// client-go if there is none. [Constructor] puts a recorder into the context.
//
// # Usage
//
// Construct a broadcaster in main, and wrap each constructor. The name is that of the
// controller in events. Shut the broadcaster down when sharedmain returns:
//
//	broadcaster := record.NewBroadcaster() // of compat/record
//	defer broadcaster.Shutdown()
//	recorders := knative.NewRecorders(broadcaster, kubeclient.Get, controller.WithEventRecorder)
//	sharedmain.MainWithContext(ctx, "backup",
//		knative.Constructor(recorders, "backup-controller", backup.NewController),
//		knative.Constructor(recorders, "restore-controller", restore.NewController),
//	)
//
// Here kubeclient is knative.dev/pkg/client/injection/kube/client, and controller is
// knative.dev/pkg/controller.
//
// # Guarantees
//
//   - The events are written with the client of the program, through the core group, with
//     the role that the program has.
//   - Each wrapped controller has its own name in events.
//
// # Limitations
//
//   - Controllers that are not wrapped keep the recorder of client-go.
//   - A test that puts a recorder into the context itself needs no wrapper, because a
//     generated controller takes that one.
package knative
