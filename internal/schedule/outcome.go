package schedule

import "time"

// Outcome says what became of a request.
type Outcome uint8

const (
	Written    Outcome = iota // the server has handled the request
	Gone                      // the object to patch does not exist
	Changed                   // the object to patch has another version
	Taken                     // an object with the name to create exists
	Refused                   // the server rejects the request
	Denied                    // credentials or permissions are missing, or not there yet
	PushedBack                // the server asks all clients to slow down, and has not handled the request
	Troubled                  // the request failed; the server may have handled it or not
	Outcomes                  // the number of outcomes
)

var outcomeNames = [Outcomes]string{"written", "gone", "changed", "taken", "refused", "denied", "pushedBack", "troubled"}

// String returns the name of the outcome.
func (o Outcome) String() string { return outcomeNames[o] }

// Passed reports whether the item has not failed: what the response contains decides what follows.
func (o Outcome) Passed() bool { return o < Refused }

// Handled reports whether the server has handled the request, and not failed it for a reason that can
// concern others.
func (o Outcome) Handled() bool { return o < PushedBack }

// Fails reports whether the outcome makes a namespace sick.
func (o Outcome) Fails() bool { return o >= Denied }

// Delays of an item double with each failure in a row. Jitter makes them longer.
const (
	RetryFirst   = time.Second      // the first delay, and the first interval between the retries of a namespace
	RetryMax     = 80 * time.Second // the longest of both
	pushedMax    = 16 * time.Second // after a push-back, which can concern a share of the requests
	deniedMax    = 5 * time.Minute  // of an item that the server denies
	RefusedFirst = time.Minute      // the first one of an item that the server rejects
	refusedMax   = 5 * deniedMax    // with jitter, half an hour
)

var delays = [Outcomes]struct{ first, longest time.Duration }{
	Refused: {RefusedFirst, refusedMax}, Denied: {RetryFirst, deniedMax}, PushedBack: {RetryFirst, pushedMax}, Troubled: {RetryFirst, RetryMax},
}

// Delay returns for how long to wait after a number of failures in a row, of which the latest is o.
func (o Outcome) Delay(failures uint8) time.Duration {
	delay, longest := delays[o].first, delays[o].longest
	for ; failures > 1 && delay < longest; failures-- {
		delay *= 2
	}
	return min(delay, longest)
}

// Answer is what the response to a request means for its item and its namespace.
type Answer struct {
	Outcome Outcome
	// Delay is for how long the item waits. If zero, an item that has passed waits for nothing, and
	// another one for its back-off.
	Delay time.Duration
	// Pause is for how long the server wants no request of the namespace. If zero, the server does not say.
	Pause time.Duration
}
