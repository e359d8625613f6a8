package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/events"
)

// errWrong means that the result of the demo is wrong.
var errWrong = errors.New("FAILED")

// pace is how fast time passes in a session.
type pace struct {
	// duration is how long the controllers emit events, and speed is how many times as
	// fast as usual.
	duration, speed time.Duration
	// options are the intervals of the recorder.
	options events.Options
	// settle bounds the time from the last occurrence until the last series is finished.
	settle time.Duration
	// summary is the interval of the lines that sum up.
	summary time.Duration
}

const (
	heartbeatInterval = 6 * time.Second
	finishAfter       = 5 * time.Second
)

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
		summary: 5 * time.Second,
	}
}

// inHours is the pace of a session in virtual time: the recorder has its defaults.
var inHours = pace{duration: 2 * time.Hour, speed: 1, settle: time.Hour, summary: 30 * time.Minute}

// session is a run of the controllers on a server.
type session struct {
	sink        *sink
	stored      <-chan *eventsv1.Event
	pace        pace
	out         io.Writer
	broadcaster *events.Broadcaster
	ledger      ledger
	started     time.Time
}

func newSession(server server, pace pace, out io.Writer) (*session, error) {
	stored := make(chan *eventsv1.Event, 100) // more than a shutdown writes
	sink := &sink{server: server, stored: stored}
	broadcaster, err := events.New(sink, pace.options)
	if err != nil {
		return nil, err
	}
	return &session{sink: sink, stored: stored, pace: pace, out: out, broadcaster: broadcaster}, nil
}

// play runs a session.
func play(ctx context.Context, server server, pace pace, out io.Writer) error {
	s, err := newSession(server, pace, out)
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// run runs the controllers, shows what the server stores until all Events are in their
// final states, and prints the result. If that is wrong, it returns errWrong.
func (s *session) run(ctx context.Context) error {
	if err := s.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	defer s.broadcaster.Shutdown()
	fmt.Fprintln(s.out, "    TIME  CHANGE     STATE        COUNT  EVENT")
	s.started = time.Now()
	if err := s.emit(ctx); err != nil {
		return err
	}
	// List after the shutdown, because an additional write at the shutdown is an error.
	s.broadcaster.Shutdown()
	for len(s.stored) > 0 {
		s.show(<-s.stored)
	}
	list, err := s.sink.server.List(ctx, metav1.NamespaceAll, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list Events: %w", err)
	}
	return s.result(list.Items)
}

// emit runs the controllers until all Events are in their final states, or too much time
// has passed.
func (s *session) emit(ctx context.Context) error {
	emitting, stop := context.WithTimeout(ctx, s.pace.duration)
	ended := start(emitting, s.pace.speed, func(controller string) events.EventRecorder {
		return &countingRecorder{EventRecorder: s.broadcaster.NewRecorder(scheme.Scheme, controller), ledger: &s.ledger}
	})
	defer func() {
		stop()
		<-ended
	}()
	summary := time.NewTicker(s.pace.summary)
	defer summary.Stop()
	tooLate := time.NewTimer(s.pace.duration + s.pace.settle)
	defer tooLate.Stop()
	for running := ended; running != nil || !s.ledger.settled(); {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-running:
			running = nil
		case event := <-s.stored:
			s.show(event)
		case <-summary.C:
			s.summarize()
		case <-tooLate.C:
			return nil // the result contains the problems
		}
	}
	return nil
}

// show records an Event, and describes its change in a line.
func (s *session) show(event *eventsv1.Event) {
	subject, now, change := s.ledger.store(event)
	if change == "" {
		return
	}
	note := cmp.Or(now.LastNote, event.Note)
	fmt.Fprintf(s.out, "%8v  %-9s  %-9s  %7s  %s %s %s: %s\n", s.elapsed(), change, now.State,
		thousands(int(now.Count)), event.Namespace, subject.regarding, subject.reason, strings.Join(strings.Fields(note), " "))
}

// summarize compares the number of requests with that of one write per occurrence.
func (s *session) summarize() {
	emitted, requests := s.ledger.emitted(), int(s.sink.requests.Load())
	phase := "idle: a series finishes when it has been quiet for its window"
	if left := s.pace.duration - time.Since(s.started); left > 0 {
		phase = fmt.Sprintf("the controllers emit for another %s", duration.HumanDuration(left+time.Second))
	}
	fmt.Fprintf(s.out, "%8v  ---------  %s, %s; one write per occurrence: %s, %s times as many (%s)\n", s.elapsed(),
		plural(emitted, "occurrence"), plural(requests, "API call"), thousands(emitted), thousands(emitted/max(requests, 1)), phase)
}

func (s *session) elapsed() time.Duration { return time.Since(s.started).Round(100 * time.Millisecond) }

// result compares the histories with the Events in a list and prints them. It returns
// errWrong with the problems if there are any.
func (s *session) result(list []eventsv1.Event) error {
	for _, h := range s.ledger.histories {
		if !slices.ContainsFunc(list, func(event eventsv1.Event) bool {
			return h.event != nil && event.Name == h.event.Name && event.ResourceVersion == h.event.ResourceVersion
		}) {
			h.faults = append(h.faults, "the server has another version, or none")
		}
	}
	fmt.Fprint(s.out, "\nFor each Event: the count on the server, the number of emitted occurrences, and the states:\n\n")
	var problems []string
	for _, h := range s.ledger.histories {
		word, faults := "ok", h.problems()
		if len(faults) > 0 {
			word = "WRONG"
			problems = append(problems, h.subject.String())
		}
		fmt.Fprintf(s.out, "%-6s %v\n       %s of %s: %v\n", word, h.subject, thousands(h.count), thousands(h.emitted), h)
		for _, fault := range faults {
			fmt.Fprintf(s.out, "       - %s\n", fault)
		}
	}
	if dropped := s.broadcaster.Stats().Dropped; len(dropped) > 0 {
		problems = append(problems, fmt.Sprintf("dropped occurrences: %v", dropped))
	}
	emitted := s.ledger.emitted()
	fmt.Fprintf(s.out, "\n%s took %s; one write per occurrence would have taken %s.\n",
		plural(emitted, "occurrence"), plural(int(s.sink.requests.Load()), "API call"), thousands(emitted))
	if len(problems) > 0 {
		return fmt.Errorf("%w: %s", errWrong, strings.Join(problems, "; "))
	}
	fmt.Fprint(s.out, "OK: every Event went through all of its states, and every count on the server is correct.\n")
	return nil
}
