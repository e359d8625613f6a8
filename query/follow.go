package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// deniedPatience is for how long the server may deny a watch that it permitted before:
// a server that restarts denies requests until it knows the roles.
const deniedPatience = time.Minute

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 7, Cap: 30 * time.Second}
}

// follower watches the Events of one request in a goroutine, from the version of its list.
type follower struct {
	reader  *Reader
	query   *Query
	lists   *atomic.Int64
	request int
	listed  *listed
	notices chan<- notice

	group       *group    // through which it watches; the server may permit only the other one to list
	established bool      // whether the server has ever permitted the watch
	deniedSince time.Time // zero if the server did not deny the last request
}

// notice is what a follower tells the watcher: an Event exists or is gone, a list is
// complete, or an error.
type notice struct {
	request int
	list    int64           // that contains the event, or is complete if event is nil
	event   *eventsv1.Event // in its present or last version
	gone    bool
	err     error
	fatal   bool // the watch ends with err
}

// tell sends a notice. It returns false if ctx has ended.
func (f *follower) tell(ctx context.Context, n notice) bool {
	n.request = f.request
	select {
	case f.notices <- n:
		return true
	case <-ctx.Done():
		return false
	}
}

// run watches until ctx ends or the server denies it. When the server has forgotten the
// version from which to continue, it lists again.
func (f *follower) run(ctx context.Context) {
	version := f.listed.version
	if version == "" { // for example from a fake clientset
		f.tell(ctx, notice{err: fmt.Errorf("query: cannot watch events in %s: the server returned no resourceVersion", where(f.listed.namespace)), fatal: true})
		return
	}
	for backoff := newBackoff(); ; {
		began := time.Now()
		verb, err := "watch", f.watch(ctx, version)
		if time.Since(began) > backoff.Cap { // it has worked
			backoff = newBackoff()
		}
		for ; err != nil; version, err = f.list(ctx) {
			if !f.retry(ctx, verb, err, &backoff) {
				return
			}
			verb = "list"
		}
	}
}

// retry reports an error and waits. It returns false if ctx has ended or the error is
// fatal.
func (f *follower) retry(ctx context.Context, verb string, err error, backoff *wait.Backoff) bool {
	if ctx.Err() != nil {
		return false
	}
	n := notice{err: fmt.Errorf("query: cannot %s events in %s: %w", verb, where(f.listed.namespace), err)}
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		now := time.Now()
		if f.deniedSince.IsZero() {
			f.deniedSince = now
		}
		n.fatal = !f.established || now.Sub(f.deniedSince) > deniedPatience
		if apierrors.IsForbidden(err) {
			n.err = f.listed.group.denied(verb, f.listed.namespace, err)
		}
	default:
		f.deniedSince = time.Time{}
	}
	if !isExpired(err) && !f.tell(ctx, n) || n.fatal { // 410 is no news for the caller
		return false
	}
	select {
	case <-time.After(backoff.Step()):
		return true
	case <-ctx.Done():
		return false
	}
}

// watch watches from a version until ctx ends, the server has forgotten the version, or the
// server denies the watch. It retries other errors.
func (f *follower) watch(ctx context.Context, version string) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	backoff := newBackoff()
	connect := func(opts metav1.ListOptions) (watch.Interface, error) {
		w, err := f.connect(ctx, f.group, opts)
		if apierrors.IsForbidden(err) && !f.established {
			// Both groups have the same versions.
			for i := range f.reader.groups {
				other := &f.reader.groups[i]
				if other == f.group {
					continue
				}
				if permitted, otherErr := f.connect(ctx, other, opts); otherErr == nil {
					f.group, w, err = other, permitted, nil
				}
			}
		}
		if err == nil {
			f.established, f.deniedSince, backoff = true, time.Time{}, newBackoff()
			return w, nil
		}
		if isExpired(err) || !f.retry(ctx, "watch", err, &backoff) {
			select {
			case ended <- err:
			case <-ctx.Done():
			}
		}
		return nil, io.EOF // RetryWatcher logs other errors, and tries again after this one
	}
	w, err := watchtools.NewRetryWatcher(version, &cache.ListWatch{WatchFunc: connect})
	if err != nil {
		cancel()
		return err
	}
	defer func() {
		cancel()
		w.Stop()
		<-w.Done()
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return err
		case change, ok := <-w.ResultChan():
			if !ok {
				return errors.New("the watch ended")
			}
			event := f.group.event(change.Object)
			if event == nil {
				return apierrors.FromObject(change.Object)
			}
			if !f.tell(ctx, notice{event: event, gone: change.Type == watch.Deleted}) {
				return ctx.Err()
			}
		}
	}
}

// connect watches the Events of the request through a group.
func (f *follower) connect(ctx context.Context, g *group, opts metav1.ListOptions) (watch.Interface, error) {
	selectors := f.listed.options(g)
	opts.FieldSelector, opts.LabelSelector = selectors.FieldSelector, selectors.LabelSelector
	return g.watch(ctx, f.listed.namespace, opts)
}

// list tells all Events of the request, and that the list is complete. It returns the
// version of the list.
func (f *follower) list(ctx context.Context) (version string, err error) {
	var list int64
	l := lister{reader: f.reader, query: f.query, begin: func() { list = f.lists.Add(1) }, progress: func(Progress) {}}
	version, err = l.pages(ctx, f.listed.group, &f.listed.request, func(event *eventsv1.Event) bool {
		return f.tell(ctx, notice{list: list, event: event})
	})
	if err == nil && !f.tell(ctx, notice{list: list}) {
		err = ctx.Err()
	}
	return version, err
}
