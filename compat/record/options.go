package record

import (
	"context"
	"math"
	"time"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
)

// BroadcasterOption configures a [Broadcaster].
type BroadcasterOption func(*config)

type config struct {
	correlator CorrelatorOptions
	ctx        context.Context
	events     events.Options

	distinctNotes int // see events.RecorderOptions
}

func newConfig(opts []BroadcasterOption) *config {
	c := &config{
		ctx:           context.Background(),
		distinctNotes: compat.DefaultDistinctNotes,
	}
	for _, opt := range opts {
		if opt != nil {
			opt(c)
		}
	}
	return c
}

// WithContext sets the context of the broadcaster. The broadcaster logs to its logger.
// When ctx ends, the broadcaster shuts down like [Broadcaster.Shutdown], which takes up
// to events.Options.ShutdownTimeout. A program that exits should call Shutdown itself and
// wait for it.
func WithContext(ctx context.Context) BroadcasterOption {
	return func(c *config) {
		if ctx != nil {
			c.ctx = ctx
		}
	}
}

// WithCorrelatorOptions sets MaxEvents, how many different messages of events that differ in
// nothing else make the last of them and all later ones share an Event, and MessageFunc, which
// returns the message of that Event. With a MaxEvents of 1, all messages share it. The
// broadcaster logs which other options it ignores.
func WithCorrelatorOptions(options CorrelatorOptions) BroadcasterOption {
	return func(c *config) {
		c.correlator = options
		switch {
		case options.MaxEvents > 0:
			c.distinctNotes = options.MaxEvents - 1
		case options.MaxEvents < 0: // client-go converts it to a uint
			c.distinctNotes = math.MaxInt
		}
		if options.MaxEvents == 1 && options.MessageFunc == nil {
			c.correlator.MessageFunc = EventAggregatorByReasonMessageFunc
		}
	}
}

// WithSleepDuration has no effect: the broadcaster backs off exponentially.
func WithSleepDuration(time.Duration) BroadcasterOption { return func(*config) {} }

// WithOptions changes the options of the [events.Broadcaster] that records the events. What stays zero
// has the default of [compat.WithDefaults]. If options are invalid, the broadcaster logs that, and has
// the defaults:
//
//	record.NewBroadcaster(record.WithOptions(func(o *events.Options) { o.OnDrop = count }))
//
// client-go does not have this option.
func WithOptions(change func(*events.Options)) BroadcasterOption {
	return func(c *config) {
		if change != nil {
			change(&c.events)
		}
	}
}
