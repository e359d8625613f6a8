// Package shutdown never shuts down its broadcasters.
package shutdown

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"

	eventseries "github.com/eventseries/eventseries/events"
)

type server struct{ recorder events.EventRecorder }

func run(*server) error { return nil }

// The recorder does not outlive the function.
func emitOnce(pod *corev1.Pod) error {
	here := events.NewBroadcaster(nil) // want `add: defer here.Shutdown\(\)`
	if err := here.StartRecordingToSinkWithContext(nil); err != nil {
		return err
	}
	recorder := here.NewRecorder("once")
	other := (recorder)
	other.Eventf(pod, nil, "Normal", "Started", "Start", "a")
	here.NewRecorder("twice").Eventf(pod, nil, "Normal", "Started", "Start", "a")
	return nil
}

func newRecorder() record.EventRecorder {
	returned := record.NewBroadcaster() // want `return returned.Shutdown, too`
	return returned.NewRecorder(corev1.EventSource{Component: "a"})
}

func factory() func(name string) record.EventRecorder {
	return func(name string) record.EventRecorder {
		made := record.NewBroadcaster() // want `return made.Shutdown, too`
		return made.NewRecorder(corev1.EventSource{Component: name})
	}
}

func newServer() *server {
	stored := events.NewBroadcaster(nil) // want `return stored.Shutdown, too`
	recorder := stored.NewRecorder("a")
	s := &server{}
	s.recorder = recorder
	return s
}

func literal() *server {
	held := events.NewBroadcaster(nil) // want `return held.Shutdown, too`
	var recorder events.EventRecorder
	recorder = held.NewRecorder("a")
	return &server{recorder: recorder}
}

func serve() error {
	passed := events.NewBroadcaster(nil) // want `return passed.Shutdown, too`
	return run(newServerWith(passed.NewRecorder("a")))
}

func newServerWith(recorder events.EventRecorder) *server { return &server{recorder} }

func later(pod *corev1.Pod) {
	shared := record.NewBroadcaster() // want `return shared.Shutdown, too`
	recorder := shared.NewRecorder(corev1.EventSource{})
	go func() { recorder.Event(pod, "Normal", "Started", "a") }()
}

func sent(to chan events.EventRecorder) {
	queued := events.NewBroadcaster(nil) // want `return queued.Shutdown, too`
	to <- queued.NewRecorder("a")
}

func either(pod *corev1.Pod) {
	adapter := events.NewEventBroadcasterAdapter(nil) // want `add: defer adapter.Shutdown\(\)`
	adapter.NewRecorder("a").Eventf(pod, nil, "Normal", "Started", "Start", "a")
}

func configured(pod *corev1.Pod) error {
	chosen, err := eventseries.New(nil, struct{}{}) // want `add: defer chosen.Shutdown\(\)`
	if err == nil {
		chosen.NewRecorder("a").Eventf(pod, nil, "Normal", "Started", "Start", "a")
	}
	return err
}
