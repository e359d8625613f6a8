package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/events"
)

// server is an API server, and the client of a recorder whose requests it counts.
type server interface {
	// sink returns the sink of the recorder.
	sink() events.EventSink
	// calls returns the requests of the recorder.
	calls() calls
	// watch returns the changes of all Events from now on, until stop.
	watch(ctx context.Context) (changes <-chan watch.Event, stop func(), err error)
	// list returns all Events.
	list(ctx context.Context) (*eventsv1.EventList, error)
}

// pace is how fast time passes in a session.
type pace struct {
	// duration is how long the controllers emit events.
	duration time.Duration
	// speed is how many times as fast as usual the controllers retry.
	speed time.Duration
	// options are the intervals of the recorder.
	options events.Options
	// settle bounds the time from the last occurrence until the last Event is finished
	// on the server.
	settle time.Duration
	// redraw and summary are the intervals between two tables and two lines of numbers.
	redraw, summary time.Duration
}

// inSeconds is the pace of a session in real time: it has seconds where the defaults are
// minutes.
func inSeconds(emit time.Duration) pace {
	return pace{
		duration: emit,
		speed:    120,
		options: events.Options{
			HeartbeatInterval: heartbeatInterval,
			FinishAfter:       finishAfter,
			ShutdownTimeout:   5 * time.Second, // all writes precede the shutdown
		},
		settle:  finishAfter + 10*time.Second,
		redraw:  200 * time.Millisecond,
		summary: 5 * time.Second,
	}
}

const (
	heartbeatInterval = 6 * time.Second
	finishAfter       = 5 * time.Second
)

// inHours is the pace of a session in virtual time: the recorder has its defaults.
func inHours() pace {
	return pace{
		duration: 2 * time.Hour,
		speed:    1,
		settle:   time.Hour,
		redraw:   2 * time.Minute,
		summary:  30 * time.Minute,
	}
}

// session is a run of the controllers with a server that is ready.
type session struct {
	server      server
	pace        pace
	broadcaster *events.Broadcaster
	counter     counter
	observer    *observer
	display     display
	started     time.Time
	emitUntil   time.Time
	done        bool
}

func newSession(server server, pace pace, display display) *session {
	return &session{
		server:      server,
		pace:        pace,
		broadcaster: events.NewBroadcasterWithOptions(server.sink(), pace.options),
		observer:    newObserver(controllers),
		display:     display,
		started:     time.Now(),
	}
}

// run runs the controllers, waits until all Events are in their final states, and returns
// the result. It returns an error only if there is no result.
func (s *session) run(ctx context.Context) (*result, error) {
	changes, stop, err := s.server.watch(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	defer func() { s.display.end(s.snapshot()) }()
	if err := s.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, err
	}
	defer s.broadcaster.Shutdown()

	if err := s.emit(ctx, changes); err != nil {
		return nil, err
	}
	// List after the shutdown, because an additional write at the shutdown is an error.
	s.broadcaster.Shutdown()
	list, err := s.server.list(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		s.observe(&list.Items[i])
	}
	s.done = true
	return s.result(), nil
}

// emit runs the controllers, and shows changes on the server until all Events are in their
// final states, or too much time has passed.
func (s *session) emit(ctx context.Context, changes <-chan watch.Event) error {
	s.started = time.Now()
	s.emitUntil = s.started.Add(s.pace.duration)
	emitting, stop := context.WithTimeout(ctx, s.pace.duration)
	ended := start(emitting, s.pace.speed, func(controller string) events.EventRecorder {
		return s.counter.recorder(controller, s.broadcaster.NewRecorder(scheme.Scheme, controller))
	})
	running := ended
	defer func() {
		stop()
		<-ended
	}()

	redraw := time.NewTicker(s.display.interval(s.pace))
	defer redraw.Stop()
	tooLate := time.NewTimer(s.pace.duration + s.pace.settle)
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
		calls:   s.server.calls(),
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
		return fmt.Sprintf("the controllers emit for another %s", duration.HumanDuration(left+time.Second))
	default:
		return "idle: a series finishes when it has been quiet for its window"
	}
}

// result returns the result of the session.
func (s *session) result() *result {
	emitted := s.counter.emitted()
	stats := s.broadcaster.Stats()
	return &result{
		verdicts: s.observer.verdicts(emitted),
		emitted:  sum(emitted),
		calls:    s.server.calls(),
		accepted: stats.Occurrences,
		dropped:  stats.Dropped,
	}
}
