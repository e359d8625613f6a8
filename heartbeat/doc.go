// Package heartbeat decides when an ongoing event series is written ([Interval]), and when a
// quiet one is over ([Window] and [Rhythm]). It reads no clock, does no I/O, and knows nothing of
// events.
//
//   - A [Window] outlasts a loop whose period is at most 1,000 seconds, and one that doubles
//     its delays up to that, with 5 percent of jitter. With at least 6 minutes and at most
//     36, a loop that is regular is over after 2.1 times its period.
package heartbeat
