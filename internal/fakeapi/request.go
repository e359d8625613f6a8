package fakeapi

import (
	"fmt"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

// Request is one request of a client.
type Request struct {
	// Time is when the request arrived.
	Time time.Time
	// Verb is "create", "update", "patch" or "list".
	Verb string
	// Namespace and Name identify the Event. A list has no name.
	Namespace, Name string
	// Body is the Event or the patch that was sent, as JSON. A list has no body.
	Body string
	// Err is the error that the client got, nil if the request succeeded or is in
	// flight.
	Err error
}

// String returns the request on one line, for people.
func (r Request) String() string {
	s := fmt.Sprintf("%s %s %s/%s", r.Time.Format(time.TimeOnly), r.Verb, r.Namespace, r.Name)
	if r.Err != nil {
		s += ": " + r.Err.Error()
	}
	return s
}

// encode returns an Event as it travels to the server, and as it arrives there. Times
// lose their nanoseconds on the way, and strings what is not UTF-8.
func encode(verb string, event *eventsv1.Event) (body string, received *eventsv1.Event, err error) {
	if err := checkAddress(verb, event); err != nil {
		return "", nil, err
	}
	data, err := json.Marshal(event)
	if err == nil {
		received = &eventsv1.Event{}
		err = json.Unmarshal(data, received)
	}
	if err != nil {
		return "", nil, fmt.Errorf("cannot %s Event %s/%s: %w", verb, event.Namespace, event.Name, err)
	}
	return string(data), received, nil
}

// checkAddress returns an error if no client can send a request about event.
func checkAddress(verb string, event *eventsv1.Event) error {
	switch {
	case event == nil:
		return fmt.Errorf("cannot %s a nil Event", verb)
	case event.Namespace == "":
		return fmt.Errorf("cannot %s Event %q without a namespace", verb, event.Name)
	}
	return nil
}

func nameOf(event *eventsv1.Event) types.NamespacedName {
	return types.NamespacedName{Namespace: event.Namespace, Name: event.Name}
}
