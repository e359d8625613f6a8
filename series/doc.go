// Package series is the vocabulary that writers and readers of event series share:
// what distinguishes two events ([Key]), whether an event still recurs ([State]), and how
// an events.k8s.io/v1 Event describes that ([Series]).
//
// # Usage
//
// A reader converts Events of any recorder:
//
//	found, err := series.FromEvent(event)
//	if err != nil {
//		return err // the event is malformed
//	}
//	if found.StateAt(time.Now()) == series.Ongoing {
//		fmt.Println(found.Key.Reason, found.Count, found.Last)
//	}
//
// A writer makes Events and patches of a [Series] by [Series.Event] and
// [Series.Patch]. Package events does that for controllers.
//
// Functions are pure, and [Key.Name] is the same in every process and every version. Times are
// rounded down to microseconds, as in the API, and a count stays at 2147483647.
package series
