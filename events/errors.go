package events

import "errors"

var (
	// ErrStarted is returned by a start of a broadcaster that has been started
	// already.
	ErrStarted = errors.New("events: broadcaster has been started already")

	// ErrShutDown is returned where a broadcaster is to do what it does not do any
	// more after Shutdown.
	ErrShutDown = errors.New("events: broadcaster has been shut down")
)
