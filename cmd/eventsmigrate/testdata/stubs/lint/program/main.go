// Command program passes on the recorder of a broadcaster, which is the last to end.
package main

import "k8s.io/client-go/tools/events"

type server struct{ recorder events.EventRecorder }

func (s *server) run() {}

// The caller does not shut it down.
func newRecorder() (events.EventRecorder, events.EventBroadcaster) {
	returned := events.NewBroadcaster(nil) // want `return returned.Shutdown, too`
	return returned.NewRecorder("returned"), returned
}

func main() {
	_, _ = newRecorder()
	broadcaster := events.NewBroadcaster(nil) // want `add: defer broadcaster.Shutdown\(\)`
	s := &server{broadcaster.NewRecorder("program")}
	start := func() *server {
		inner := events.NewBroadcaster(nil) // want `return inner.Shutdown, too`
		return &server{inner.NewRecorder("inner")}
	}
	start().run()
	s.run()
}
