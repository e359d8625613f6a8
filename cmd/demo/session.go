package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/events"
)

// The demo uses seconds where the defaults are minutes.
const (
	heartbeatInterval = 6 * time.Second
	finishAfter       = 5 * time.Second
	noteInterval      = time.Second
	// settleTimeout bounds the time from the last occurrence until the last Event is
	// finished on the server.
	settleTimeout = finishAfter + 10*time.Second
	// shutdownTimeout is short, because all writes precede the shutdown.
	shutdownTimeout = 5 * time.Second
)

// session is a run of the controllers with a server that is ready.
type session struct {
	clients     *clients
	requests    *requests
	broadcaster *events.Broadcaster
	controllers []controller
	counter     counter
	observer    *observer
	display     display
	started     time.Time
	emitUntil   time.Time
	done        bool
}

func newSession(clients *clients, counted *requests, display display) *session {
	controllers := controllers()
	return &session{
		clients:  clients,
		requests: counted,
		broadcaster: events.NewBroadcasterWithOptions(&events.EventSinkImpl{Interface: clients.recording}, events.Options{
			HeartbeatInterval: heartbeatInterval,
			FinishAfter:       finishAfter,
			ShutdownTimeout:   shutdownTimeout,
		}),
		controllers: controllers,
		observer:    newObserver(controllers),
		display:     display,
		started:     time.Now(),
	}
}

// run runs the controllers for a duration, waits until all Events are in their final
// states, and returns the result. It returns an error only if there is no result.
func (s *session) run(ctx context.Context, duration time.Duration) (*result, error) {
	watcher, err := s.clients.watch(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		watcher.Stop()
		<-watcher.Done()
	}()
	defer func() { s.display.end(s.snapshot()) }()
	if err := s.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, err
	}
	defer s.broadcaster.Shutdown()

	if err := s.emit(ctx, duration, watcher.ResultChan()); err != nil {
		return nil, err
	}
	// List after the shutdown, because an additional write at the shutdown is an error.
	s.broadcaster.Shutdown()
	list, err := s.clients.list(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		s.observe(&list.Items[i])
	}
	s.done = true
	return s.result(), nil
}

// emit runs the controllers for a duration, and shows changes on the server until all
// Events are in their final states, or settleTimeout has passed.
func (s *session) emit(ctx context.Context, duration time.Duration, changes <-chan watch.Event) error {
	s.started = time.Now()
	s.emitUntil = s.started.Add(duration)
	emitting, stop := context.WithTimeout(ctx, duration)
	ended := start(emitting, s.controllers, func(controller string) events.EventRecorder {
		return s.counter.recorder(controller, s.broadcaster.NewRecorder(scheme.Scheme, controller))
	})
	running := ended
	defer func() {
		stop()
		<-ended
	}()

	redraw := time.NewTicker(s.display.interval())
	defer redraw.Stop()
	tooLate := time.NewTimer(duration + settleTimeout)
	defer tooLate.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-running:
			running = nil
		case change, ok := <-changes:
			if !ok {
				return errors.New("the watch of Events ended")
			}
			if err := s.handle(change); err != nil {
				return err
			}
		case <-redraw.C:
			s.display.draw(s.snapshot())
		case <-tooLate.C:
			return nil // the verdicts contain the problems
		}
		if running == nil && s.observer.settled(s.counter.emitted()) {
			return nil
		}
	}
}

// handle processes an event of the watch.
func (s *session) handle(change watch.Event) error {
	if change.Type == watch.Error {
		return fmt.Errorf("watch Events: %w", apierrors.FromObject(change.Object))
	}
	event, ok := change.Object.(*eventsv1.Event)
	if !ok {
		return fmt.Errorf("watch Events: unexpected %s of %T", change.Type, change.Object)
	}
	if change.Type == watch.Deleted {
		s.observer.observeDeletion(event)
		return nil
	}
	s.observe(event)
	return nil
}

func (s *session) observe(event *eventsv1.Event) {
	l, what, changed := s.observer.observe(event)
	if !changed {
		return
	}
	now := s.snapshot()
	s.display.changed(now, what, newRow(l, s.counter.emitted()[l.subject], time.Now()))
}

// snapshot returns the current state.
func (s *session) snapshot() snapshot {
	now := time.Now()
	emitted := s.counter.emitted()
	shot := snapshot{
		elapsed: now.Sub(s.started),
		phase:   s.phase(now),
		emitted: sum(emitted),
		calls:   s.requests.calls(),
	}
	for _, l := range s.observer.lifecycles {
		shot.rows = append(shot.rows, newRow(l, emitted[l.subject], now))
	}
	return shot
}

func (s *session) phase(now time.Time) string {
	left := s.emitUntil.Sub(now)
	switch {
	case s.done:
		return "done"
	case left > 0:
		return fmt.Sprintf("the controllers emit for another %s", seconds(left+time.Second))
	default:
		return fmt.Sprintf("idle: a series finishes %s after its last occurrence", seconds(finishAfter))
	}
}

// result returns the result of the session.
func (s *session) result() *result {
	emitted := s.counter.emitted()
	stats := s.broadcaster.Stats()
	return &result{
		verdicts: s.observer.verdicts(emitted),
		emitted:  sum(emitted),
		calls:    s.requests.calls(),
		accepted: stats.Occurrences,
		dropped:  stats.Dropped,
	}
}
