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

// What is minutes in earnest is seconds here.
const (
	heartbeatInterval = 6 * time.Second
	finishAfter       = 5 * time.Second
	noteInterval      = time.Second
	// settleTimeout is for how long after the last occurrence the last Event may
	// take to be finished on the server.
	settleTimeout = finishAfter + 10*time.Second
	// shutdownTimeout is short because at the shutdown all should be written.
	shutdownTimeout = 5 * time.Second
)

// session is a run of the controllers against a server that is ready.
type session struct {
	clients     *clients
	requests    *requests
	broadcaster *events.Broadcaster
	loops       []loop
	tally       tally
	observer    *observer
	display     display
	started     time.Time
	quietFrom   time.Time // when the controllers end
	over        bool
}

func newSession(clients *clients, counted *requests, display display) *session {
	loops := controllers()
	return &session{
		clients:  clients,
		requests: counted,
		broadcaster: events.NewBroadcasterWithOptions(&events.EventSinkImpl{Interface: clients.recording}, events.Options{
			HeartbeatInterval: heartbeatInterval,
			FinishAfter:       finishAfter,
			ShutdownTimeout:   shutdownTimeout,
		}),
		loops:    loops,
		observer: newObserver(loops),
		display:  display,
		started:  time.Now(),
	}
}

// run lets the controllers emit for a while, waits until the server knows that
// all is over, and returns what was found. The error is that of something else
// that kept the demo from finding out.
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
	// It may write once more, which would be wrong, so the server is asked after
	// it.
	s.broadcaster.Shutdown()
	list, err := s.clients.list(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		s.observe(&list.Items[i])
	}
	s.over = true
	return s.result(), nil
}

// emit runs the controllers for a while, and shows what changes on the server
// until nothing more is to come, or should have come.
func (s *session) emit(ctx context.Context, duration time.Duration, changes <-chan watch.Event) error {
	s.started = time.Now()
	s.quietFrom = s.started.Add(duration)
	emitting, stop := context.WithTimeout(ctx, duration)
	ended := start(emitting, s.loops, func(controller string) events.EventRecorder {
		return s.tally.recorder(controller, s.broadcaster.NewRecorder(scheme.Scheme, controller))
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
				return errors.New("the watch of Events has ended")
			}
			if err := s.take(change); err != nil {
				return err
			}
		case <-redraw.C:
			s.display.draw(s.snapshot())
		case <-tooLate.C:
			return nil // the verdicts say what is missing
		}
		if running == nil && s.observer.settled(s.tally.emitted()) {
			return nil
		}
	}
}

// take takes in a change that the server tells of.
func (s *session) take(change watch.Event) error {
	if change.Type == watch.Error {
		return fmt.Errorf("watch Events: %w", apierrors.FromObject(change.Object))
	}
	event, ok := change.Object.(*eventsv1.Event)
	if !ok {
		return fmt.Errorf("watch Events: %s of a %T", change.Type, change.Object)
	}
	if change.Type == watch.Deleted {
		s.observer.observeDeletion(event)
		return nil
	}
	s.observe(event)
	return nil
}

func (s *session) observe(event *eventsv1.Event) {
	l, what, seen := s.observer.observe(event)
	if !seen {
		return
	}
	now := s.snapshot()
	s.display.changed(now, what, newRow(l, s.tally.emitted()[l.subject], time.Now()))
}

// snapshot returns how things stand.
func (s *session) snapshot() snapshot {
	now := time.Now()
	emitted := s.tally.emitted()
	shot := snapshot{
		elapsed: now.Sub(s.started),
		phase:   s.phase(now),
		emitted: sum(emitted),
		calls:   s.requests.calls(),
	}
	for _, l := range s.observer.lives {
		shot.rows = append(shot.rows, newRow(l, emitted[l.subject], now))
	}
	return shot
}

func (s *session) phase(now time.Time) string {
	left := s.quietFrom.Sub(now)
	switch {
	case s.over:
		return "over"
	case left > 0:
		return fmt.Sprintf("the controllers emit for another %s", seconds(left+time.Second))
	default:
		return fmt.Sprintf("quiet: a series is finished %s after its last occurrence", seconds(finishAfter))
	}
}

// result judges what was seen.
func (s *session) result() *result {
	emitted := s.tally.emitted()
	stats := s.broadcaster.Stats()
	return &result{
		verdicts: s.observer.verdicts(emitted),
		emitted:  sum(emitted),
		calls:    s.requests.calls(),
		takenIn:  stats.Occurrences,
		dropped:  stats.Dropped,
	}
}
