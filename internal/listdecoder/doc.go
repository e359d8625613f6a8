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
//
// # Cost
//
// Two alternatives need less code. "Each Event" reads a list as Decode does, but decodes
// each Event with the generated Unmarshal, and keeps equal notes once. "Page" decodes pages
// of 500 Events as a whole, as the typed client does. A restart with 100,000 Events on a
// real API server takes, as the medians of at least five interleaved rounds on two cores:
//
//	                             Decode  each Event     page
//	CPU                           1.0 s       1.2 s    1.7 s
//	peak heap, with garbage       49 MB       62 MB    82 MB
//	heap of the restored series   35 MB       35 MB    47 MB
//	allocated                     91 MB      315 MB   686 MB
//	time                          3.1 s       3.2 s    6.7 s
//	CPU of the server             3.3 s       3.2 s    6.3 s
//
// The server counts all Events for each page, so pages of 5,000 Events take half of the
// time. Decoded as a whole, they take a peak heap of 106 MB.
package listdecoder
