// Package listdecoder reads lists of Events one Event at a time, so that a recorder that
// starts need not hold pages of them in memory.
//
// # Usage
//
// The recorder passes a function with the context of a list:
//
//	ctx = listdecoder.NewContext(ctx, sink, func(event *eventsv1.Event) { … })
//	page, err := sink.List(ctx, namespace, opts)
//	// page.Items has the Events that the function has not received.
//
// A sink of this module passes it on to the function that reads the response:
//
//	meta, ok, err := listdecoder.Decode(body, gv, listdecoder.FromContext(ctx, sink))
//
// # Guarantees
//
//   - A function is only for the sink that it is passed with. If users wrap a sink, their
//     wrapper receives and returns whole lists.
//   - [Decode] decides by the content, not by the content type. It consumes nothing unless the
//     content is a list of Events in protobuf.
//   - The Events have the fields that [series.FromEvent] reads, with the same values as after
//     the generated Unmarshal, and deprecatedCount. Decode skips all other fields.
//   - Bad input is an error. Lengths in the input allocate nothing: buffers grow with the data
//     that arrives. A malformed Event does not keep others of its page from being received.
//
// # Limitations
//
//   - An Event is valid until the function returns, because Decode reuses it.
//   - If Decode returns an error, the function may have received a part of the list.
package listdecoder
