package main

import "fmt"

// lineHeading says what line puts into its columns.
const lineHeading = "  TIME  CHANGE     STATE        COUNT  EVENT\n"

// line tells of a change of an Event on the server.
func line(s snapshot, what step, r row) string {
	return fmt.Sprintf("%5.1fs  %-9s  %-9s  %7s  %s %s %s: %s\n", s.elapsed.Seconds(), what, r.state,
		thousands(r.count), r.namespace, r.subject.regarding, r.subject.reason, r.note)
}

// summary tells how things stand.
func summary(s snapshot) string {
	return fmt.Sprintf("%5.1fs  ---------  %s, %s; one write for each would have been %s%s (%s)\n", s.elapsed.Seconds(),
		plural(s.emitted, "occurrence"), plural(s.calls.total(), "API call"), thousands(s.emitted), times(s), s.phase)
}
