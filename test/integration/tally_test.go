package integration

import (
	"fmt"

	"github.com/eventseries/eventseries/events"
)

// tally emits, and knows what must be on the server then.
type tally struct {
	namespace string
	recorder  events.EventRecorder

	counts  map[string]int // of the occurrences, by the name of the Pod
	emitted int            // all of them
}

func newTally(namespace string, recorder events.EventRecorder) *tally {
	return &tally{namespace: namespace, recorder: recorder, counts: map[string]int{}}
}

// occur emits so many events about the Pod of this number.
func (y *tally) occur(pod, times int) {
	object := podIn(y.namespace, fmt.Sprintf("pod-%d", pod))
	emit(y.recorder, object, times)
	y.counts[object.Name] += times
	y.emitted += times
}
