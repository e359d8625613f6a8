package events

import "errors"

var (
	// ErrStarted says that the broadcaster is already started.
	ErrStarted = errors.New("events: broadcaster was started already")

	// ErrShutDown says that the broadcaster is shut down. See [Broadcaster.Shutdown].
	ErrShutDown = errors.New("events: broadcaster is shut down")
)
