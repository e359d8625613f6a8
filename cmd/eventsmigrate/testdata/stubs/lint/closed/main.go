// Command closed shuts down the broadcaster that another function of it makes.
package main

import "k8s.io/client-go/tools/events"

func newRecorder() (events.EventRecorder, events.EventBroadcaster) {
	broadcaster := events.NewBroadcaster(nil)
	return broadcaster.NewRecorder("closed"), broadcaster
}

func main() {
	_, broadcaster := newRecorder()
	defer broadcaster.Shutdown()
}
