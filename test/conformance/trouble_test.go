package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	restclient "k8s.io/client-go/rest"

	eventseries "github.com/eventseries/eventseries/events"
)

var resource = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}

// A sink that has trouble for a moment is tried again.
func TestTroubleForAMoment(t *testing.T) {
	for name, err := range map[string]error{
		"an answer that is no Event": &apierrors.UnexpectedObjectError{Object: &metav1.Status{}},
		"no answer":                  errors.New("connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			withBoth(t, func(t *testing.T, p *program) {
				p.sink.failWith(func(call) error {
					if len(p.sink.all()) <= 2 {
						return err
					}
					return nil
				})
				p.emit(pod("a"), "Testing")
				time.Sleep(time.Minute)
				synctest.Wait()
				assert.Equal(t, []string{"create", "create", "create"}, p.sink.verbs())
				assert.Equal(t, "a", p.only(t).Regarding.Name)
			})
		})
	}
}

// What a server refuses for good is not tried again.
func TestRefused(t *testing.T) {
	for name, err := range map[string]error{
		"invalid":     apierrors.NewInvalid(schema.GroupKind{Group: resource.Group, Kind: "Event"}, "a", nil),
		"bad request": apierrors.NewBadRequest("not understood"),
	} {
		t.Run(name, func(t *testing.T) {
			withBoth(t, func(t *testing.T, p *program) {
				p.sink.failWith(func(call) error { return err })
				p.emit(pod("a"), "Testing")
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				assert.Equal(t, []string{"create"}, p.sink.verbs())
				if ours, ok := p.broadcaster.(*eventseries.Broadcaster); ok {
					assert.Equal(t, map[eventseries.DropReason]uint64{eventseries.DropRejected: 1}, ours.Stats().Dropped)
				}
			})
		})
	}
}

// Different on purpose: client-go drops an event with whatever status a server
// answers, overload and outages included, and with a request that could not be made.
// Here all that no server has refused for good is tried again.
func TestTroubleThatClientGoTakesForRefusal(t *testing.T) {
	for name, err := range map[string]error{
		"internal error":    apierrors.NewInternalError(errors.New("etcd has no leader")),
		"too many requests": apierrors.NewTooManyRequests("slow down", 1),
		"unavailable":       apierrors.NewServiceUnavailable("not ready"),
		"timeout":           apierrors.NewTimeoutError("too slow", 1),
		"forbidden so far":  apierrors.NewForbidden(resource, "a", errors.New("no role yet")),
		"no code":           &apierrors.StatusError{},
		"no request":        &restclient.RequestConstructionError{Err: errors.New("no token yet")},
	} {
		t.Run(name, func(t *testing.T) {
			withOurs(t, func(t *testing.T, p *program) {
				p.sink.failWith(func(call) error {
					if len(p.sink.all()) <= 2 {
						return err
					}
					return nil
				})
				p.emit(pod("a"), "Testing")
				p.emit(pod("a"), "Testing")
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				assert.EqualValues(t, 2, p.only(t).Series.Count)
			})
		})
	}
}

// Different on purpose: client-go gives up after twelve tries, two minutes. Here an
// event is kept for as long as its series goes on.
func TestLongOutage(t *testing.T) {
	withOurs(t, func(t *testing.T, p *program) {
		p.sink.failWith(func(call) error { return errors.New("connection refused") })
		for range 60 {
			p.emit(pod("a"), "Testing")
			time.Sleep(time.Minute)
		}
		assert.Greater(t, len(p.sink.all()), 12)
		p.sink.failWith(nil)
		time.Sleep(3 * time.Minute)
		assert.EqualValues(t, 60, p.only(t).Series.Count)
	})
}

// Shutdown does not wait for a server that is away, not longer than it says.
// client-go's gives up at once. What is lost is counted.
func TestShutdownWhileTheServerIsAway(t *testing.T) {
	withOurs(t, func(t *testing.T, p *program) {
		p.sink.failWith(func(call) error { return errors.New("connection refused") })
		p.emit(pod("a"), "Testing")
		start := time.Now()
		p.broadcaster.Shutdown()
		assert.LessOrEqual(t, time.Since(start), eventseries.DefaultShutdownTimeout)
		assert.Equal(t, map[eventseries.DropReason]uint64{eventseries.DropShutdown: 1}, p.broadcaster.(*eventseries.Broadcaster).Stats().Dropped)
	})
}

// A thousand events, none of which gets through at once: all are written, and a
// watcher has seen all.
func TestManyEventsInTrouble(t *testing.T) {
	withOurs(t, func(t *testing.T, p *program) {
		const n, failures = 1000, 4
		p.sink.to = accepting{} // a fake clientset takes a while for that many
		var seen lines
		_, err := p.broadcaster.StartEventWatcher(func(runtime.Object) { seen.add("event") })
		require.NoError(t, err)
		tries := make(map[string]int)
		var mu sync.Mutex // guards tries
		p.sink.failWith(func(c call) error {
			mu.Lock()
			defer mu.Unlock()
			if tries[c.event.Name]++; tries[c.event.Name] <= failures {
				return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError}}
			}
			return nil
		})
		for i := range n {
			p.recorder.Eventf(pod(fmt.Sprint("pod-", i)), nil, "Normal", "Tested", "Testing", "%d", i)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Len(t, seen.get(), n)
		assert.Len(t, tries, n)
		assert.Len(t, p.sink.all(), n*(failures+1))
		stats := p.broadcaster.(*eventseries.Broadcaster).Stats()
		assert.EqualValues(t, n, stats.Writes[eventseries.WriteKey{Kind: "create", Outcome: "written"}])
		assert.Empty(t, stats.Dropped)
	})
}

// accepting is a sink that takes everything.
type accepting struct{}

func (accepting) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return event, nil
}

func (accepting) Update(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return event, nil
}

func (accepting) Patch(_ context.Context, event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return event, nil
}
