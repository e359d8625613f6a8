package eventstest

import (
	"fmt"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

// Request is one call of a sink.
type Request struct {
	// Time of the call.
	Time time.Time
	// Verb is "create", "update", "patch" or "list".
	Verb string
	// Namespace and Name of the Event. A list has no name.
	Namespace, Name string
	// Body is what was sent, as JSON: an Event or a patch. A list has none.
	Body string
	// Err is the answer, nil if the request was carried out.
	Err error
}

// String returns r in one line, for people.
func (r Request) String() string {
	s := fmt.Sprintf("%s %s %s/%s", r.Time.Format(time.TimeOnly), r.Verb, r.Namespace, r.Name)
	if r.Err != nil {
		s += ": " + r.Err.Error()
	}
	return s
}

// wire returns what arrives on a server of an Event that is sent: times are
// microseconds there, and strings UTF-8.
func wire(verb string, event *eventsv1.Event) (sent *eventsv1.Event, body string, err error) {
	if err := addressed(verb, event); err != nil {
		return nil, "", err
	}
	data, err := json.Marshal(event)
	if err != nil {
		return nil, "", fmt.Errorf("eventstest: cannot %s event %s/%s: %w", verb, event.Namespace, event.Name, err)
	}
	sent = &eventsv1.Event{}
	if err := json.Unmarshal(data, sent); err != nil {
		return nil, "", fmt.Errorf("eventstest: cannot %s event %s/%s: %w", verb, event.Namespace, event.Name, err)
	}
	return sent, string(data), nil
}

// addressed returns an error if no request can be made about event.
func addressed(verb string, event *eventsv1.Event) error {
	switch {
	case event == nil:
		return fmt.Errorf("eventstest: cannot %s a nil event", verb)
	case event.Namespace == "":
		return fmt.Errorf("eventstest: cannot %s event %q without a namespace", verb, event.Name)
	}
	return nil
}

func nameOf(event *eventsv1.Event) types.NamespacedName {
	return types.NamespacedName{Namespace: event.Namespace, Name: event.Name}
}
