package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/faultproxy"
)

// startTimeout bounds one start of the control plane, startAttempts how many
// there are: on a busy machine it gives itself up when it has not come up in its
// time.
const (
	startTimeout  = 3 * time.Minute
	startAttempts = 3
)

// faults makes a server and a network fail as a schedule says.
type faults struct {
	server *controlplane.Server
	// network is between the emitters and the server, etcd between the server and
	// its etcd.
	network, etcd *faultproxy.Proxy
	log           func(format string, args ...any)
}

// runServer does what a schedule says of the server and its etcd.
func (f *faults) runServer(ctx context.Context, begin time.Time, steps []step) error {
	for _, s := range steps {
		if !until(ctx, begin.Add(s.at)) {
			return context.Cause(ctx)
		}
		if err := f.serverStep(ctx, s); err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
	}
	return nil
}

// serverStep does one thing and undoes it.
func (f *faults) serverStep(ctx context.Context, s step) error {
	switch s.kind {
	case killServer:
		if err := f.server.Kill(); err != nil {
			return err
		}
		until(ctx, time.Now().Add(s.lasts))
		return f.restart(ctx)
	case pauseServer:
		if err := f.server.Pause(); err != nil {
			return err
		}
		until(ctx, time.Now().Add(s.lasts))
		return f.server.Resume()
	default:
		f.proxyStep(ctx, f.etcd, s)
		return nil
	}
}

// restart starts the server again.
func (f *faults) restart(ctx context.Context) error {
	var err error
	for range startAttempts {
		starting, cancel := context.WithTimeout(ctx, startTimeout)
		err = f.server.Restart(starting)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		f.log("the server did not start, once more: %v", err)
	}
	return err
}

// runNetwork does what a schedule says of the network.
func (f *faults) runNetwork(ctx context.Context, begin time.Time, steps []step) error {
	for _, s := range steps {
		if !until(ctx, begin.Add(s.at)) {
			return context.Cause(ctx)
		}
		f.proxyStep(ctx, f.network, s)
	}
	return nil
}

// resetEvery is how often connections are reset while the network resets.
const resetEvery = 300 * time.Millisecond

// proxyStep has a proxy fail for a while.
func (f *faults) proxyStep(ctx context.Context, proxy *faultproxy.Proxy, s step) {
	end := time.Now().Add(s.lasts)
	proxy.Set(s.fault)
	defer proxy.Set(faultproxy.Fault{})
	switch s.kind {
	case netRefuse, resetEtcd:
		proxy.Reset() // as if nobody was there any more
	case netReset:
		for time.Until(end) > resetEvery && until(ctx, time.Now().Add(resetEvery)) {
			proxy.Reset()
		}
	default: // the fault is all there is
	}
	until(ctx, end)
}
