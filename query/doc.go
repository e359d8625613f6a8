// Package query reads Events as series: what is going on, since when, how often, and
// whether it still goes on. It understands the Events of every recorder.
//
// # Usage
//
// A [Reader] lists series, or watches them:
//
//	reader := query.NewReader(clientset, query.Options{})
//	ongoing := query.Query{States: []series.State{series.Ongoing}, Types: []string{"Warning"}}
//	for item, err := range reader.List(ctx, ongoing) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(item.Key.Regarding.Name, item.Key.Reason, item.Count, item.Rate())
//	}
//
// A [Query] selects them by object, controller, instance, Node, reason, action, type, state,
// namespace and time. For what happened to an object during its life, select it by UID, and let [Owners]
// add its owners:
//
//	owners := &query.Owners{Metadata: metadataClient, Mapper: mapper}
//	objects, errs := owners.Follow(ctx, query.Object{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "checkout-0"})
//	life := query.Sort(reader.List(ctx, query.Query{Objects: objects}), query.ByFirst, 0)
//
// [ReadEvents] and [NewFileReader] do the same with a file, such as one of must-gather.
//
// [Top] adds up series, for example by controller. [Roots] tell the workload of an object, also if
// the object has been deleted, and the dependents of a workload. [Reader.Chain] finds the earlier and
// the later series of a key.
//
// # States
//
// [FromEvent] derives a series from the fields that its recorder writes:
//
//	recorder              Event                            series
//	this project          label eventseries.dev/state      as it says; Ongoing is Unknown (stale) after
//	                                                       lastObservedTime + heartbeat + window + 10 min
//	                      no label, no series              Singleton
//	client-go             series                           Ongoing until lastObservedTime + 46 min, then
//	tools/events                                           Unknown: it updates series every 30 minutes
//	                      eventTime only                   Singleton
//	client-go             count > 1                        Ongoing until lastTimestamp + 5 min + window,
//	tools/record                                           then Quiet, or Unknown while it writes other
//	(legacy)                                               Events about the object. Unknown instead of
//	                                                       Ongoing if it recurs every 36 min or less often
//	                      count of 1                       Singleton
//	others                none of these times              Singleton at creationTimestamp
//
// The window is for how long a series can be quiet although it goes on: 6 minutes
// ([series.FinishAfter]), or more for a slow loop. The Events of this project say it. An Event of
// the legacy recorder has no gaps. This package assumes back-off, so the last gap is about half of
// the time from the first to the last occurrence; the window is 2.1 times that, at least 6 and at
// most 36 minutes. For the kubelet it is at most 10 minutes and a half, because its back-off is
// at most 5 minutes.
//
// The recorder of tools/events writes the count of a series once more 6 minutes or more after the
// latest occurrence. If the managed fields tell that it has, the series is Quiet, and not Ongoing.
//
// A series of a recorder that writes no states is Unknown, and not Ongoing, if another event of the
// controller about the object began since: see [Item.Followed]. An event whose reason occurred before
// the latest occurrence of the series, with any note, does not count: it can be a retry of the loop.
//
// The legacy recorder writes one event of an object every 5 minutes if many occur, whichever comes
// first, and drops the others. So the silence of a series says nothing while other events of the
// same source and object are written: it becomes Quiet when it has been silent for 5 minutes and its
// window since the last of them. It takes all Events about the object to tell: a [Reader] reads
// them, and [Settle] is for programs that call [FromEvent]. The count is a lower bound: see
// [Item.LowerBound].
//
// The 10 minutes are [series.ClockSkew], by which the clocks of a recorder and a reader can differ.
//
// Only the recorder of this project says that a series is Finished. Unless it does, a series whose
// latest time is missing or more than 10 minutes in the future is Unknown, and malformed: [Sort] puts
// it behind the others of its state, and [Top] leaves its times out. A time before 1970 is none.
//
// # Where the selection happens
//
// The API server selects by namespace, and by these fields if the query has one value
// for them: regarding kind, namespace, name and UID (unless there are more than 8
// objects), reason, type, and reporting controller. For a controller, there is a second
// request for Events without a reporting controller, because old legacy recorders name
// it in the source only.
//
// The server selects states by label as far as that loses nothing: for Ongoing, it
// leaves out Events that say Finished or Unknown, and returns those without a label.
// Otherwise, the client selects: by related object, instance, Node, action, time, API
// group, state, and by fields with several values.
// [Query.FieldSelector] and [Query.LabelSelector] are for the server.
//
// Events about a cluster-scoped object are in the namespaces default or kube-system.
// Those about another object are in its namespace. Those in which an object is the
// related one can be in any namespace. A user who may not list all namespaces gets
// those of the likely ones, and a warning.
//
// # Guarantees
//
//   - A list yields each Event once. Its requests see one version of the server each,
//     unless the server forgets that version during the list; then the rest of the
//     pages shows a later one.
//   - A list needs the memory of a page, of the times and reasons of all Events without a state, and
//     of the series that are Ongoing or Quiet although their Events say no state. [Top] needs that of its groups in addition,
//     and [Sort] about 0.7 kB per Event, or per two Events of its limit.
//   - The permission to list Events suffices, and for watches that to watch them, in
//     events.k8s.io or in the core group. A [PermissionError] names what is missing.
//
// # Limitations
//
//   - The server deletes Events, by default an hour after their last update. There is
//     no history.
//   - The state of a series of client-go is a guess: tools/events for 46 minutes, and
//     tools/record for 11 to 41 minutes. A legacy series that is Unknown can have ended long ago.
//   - If a query selects by reason, type, field, or label, it takes another list to tell whether
//     a series is Ongoing or Quiet if its Event says no state. A watch does not list for those that
//     are Ongoing: it knows of later Events as far as the query selects them.
//   - If a cluster is restored from a backup, versions start over, and a watch can miss
//     Events until its connection ends and the server rejects the version.
//   - Fake clientsets do not select by field. Before client-go v0.36 they return no
//     resourceVersion, so [Reader.Watch] rejects them.
package query
