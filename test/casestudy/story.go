package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// The stories of the operators change objects this often.
const (
	touches       = 54
	touchInterval = 1500 * time.Millisecond
)

// tell runs the story with the versions of the program.
func (m *mover) tell(ctx context.Context) error {
	if m.Story == nil {
		return nil
	}
	apiserver, err := controlplane.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	s := &story{Date: time.Now().UTC().Format(time.DateOnly), Duration: m.duration}
	sides, ctx := errgroup.WithContext(ctx)
	if m.FixedPort {
		sides.SetLimit(1)
	}
	results := map[string]*side{"stock": &s.Stock, "moved": &s.Moved}
	if m.Finish != nil {
		s.Finished = new(side)
		results["finished"] = s.Finished
	}
	for tag, result := range results {
		sides.Go(func() error {
			if err := m.tellOne(ctx, apiserver, tag, result); err != nil {
				return fmt.Errorf("%s: %w", tag, err)
			}
			return nil
		})
	}
	if err := sides.Wait(); err != nil {
		return err
	}
	m.results.Story = s
	return nil
}

// tellOne runs the story with one version. It keeps the log, the audit log and the Events
// in a directory.
func (m *mover) tellOne(ctx context.Context, apiserver, tag string, result *side) (err error) {
	dir := filepath.Join(m.work, "story-"+m.name()+"-"+tag)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	c, err := m.startCluster(ctx, apiserver, tag, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.server.Stop()) }()
	err = m.Story(ctx, c)
	// Stop the program first, so that it finds its objects as they are.
	exit, stopErr := c.stop(ctx)
	if err = errors.Join(err, stopErr); err != nil {
		return err
	}
	return c.measure(ctx, exit, result)
}

// act is a part of a story.
type act struct {
	at time.Duration
	do func(context.Context) error
}

// play runs the acts of a story, and calls others every second: the parts of the cluster
// that are missing here.
func (c *cluster) play(ctx context.Context, acts []act, others func(context.Context) error) error {
	end, cancel := context.WithTimeout(ctx, c.duration)
	defer cancel()
	stage, end := errgroup.WithContext(end)
	for _, a := range acts {
		stage.Go(func() error {
			select {
			case <-end.Done():
				return nil
			case <-time.After(a.at):
			}
			if err := a.do(end); err != nil {
				return fmt.Errorf("story at %v: %w", a.at, err)
			}
			return nil
		})
	}
	stage.Go(func() error {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-end.Done():
				return nil
			case <-ticker.C:
			}
			if err := c.running(); err != nil {
				return err
			}
			if err := others(end); err != nil && end.Err() == nil {
				log.Printf("%s: %v", c.dir, err)
			}
		}
	})
	if err := stage.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// touch calls do as often as objects change in the stories of the operators, unless the
// story ends first. It passes the number of the call.
func touch(ctx context.Context, do func(i int) error) error {
	ticker := time.NewTicker(touchInterval)
	defer ticker.Stop()
	for i := range touches {
		if err := do(i); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
	return nil
}
