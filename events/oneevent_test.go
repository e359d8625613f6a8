package events

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/fakeapi"
	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

// All answers are lost for a while after a heartbeat. The next one counts from the write that
// the server has stored, so the Event neither expires nor becomes stale.
func TestAnswersAreLost(t *testing.T) {
	for _, ttl := range []time.Duration{time.Hour, 3 * time.Hour} {
		for _, during := range workload.Some(35, 5, 15, 25, 45, 55) { // minutes
			during := time.Duration(during) * time.Minute
			runBubble(t, fmt.Sprint(ttl, ", lost for ", during), func(t *testing.T) {
				w := newWorld(t, Options{EventTTL: ttl, listLimit: -1})
				isLost := false
				w.server.api.After(func(ctx context.Context, r request) error {
					if isLost {
						return io.ErrUnexpectedEOF
					}
					return w.server.after(ctx, r)
				})
				w.start(t)
				w.emit(0)
				w.emit(0)
				w.flush(t)
				emitted := 2
				beats := w.server.requestsOf("patch")
				emit := func() {
					w.emit(0)
					emitted++
					time.Sleep(10 * time.Second)
					synctest.Wait()
				}
				for w.server.requestsOf("patch") < beats+2 {
					isLost = time.Since(w.server.log()[len(w.server.log())-1].Time) > ttl/2-11*time.Second
					emit() // the answer to the heartbeat is lost, too
				}
				isLost = true
				for end := time.Now().Add(during); time.Now().Before(end); {
					emit()
				}
				isLost = false
				for healed := time.Now(); time.Since(healed) < 150*time.Minute; {
					emit()
					if time.Since(healed) > 3*time.Minute {
						require.Equal(t, series.Ongoing, series.StateAt(w.server.only(t), time.Now()), "%v after it has healed", time.Since(healed))
					}
				}
				assert.Equal(t, 1, w.server.requestsOf("create"))
				w.broadcaster.Shutdown()
				assert.EqualValues(t, emitted, countOf(w.server.only(t)))
			})
		}
	}
}

// A restart, an outage in which every request but the create fails, and another restart.
func TestLookFailsBetweenRestarts(t *testing.T) {
	for _, scope := range []Scope{SameInstance, SameController} {
		for _, outage := range []time.Duration{20 * time.Minute, time.Hour, 2 * time.Hour} {
			runBubble(t, fmt.Sprint(scope, " ", outage), func(t *testing.T) {
				s := newServer()
				for process := range 3 {
					opts := Options{Scope: scope, listLimit: -1, EventTTL: 3 * time.Hour}
					if scope == SameController {
						opts.ReportingInstance = fmt.Sprint("tester-", process)
					}
					w := startOn(t, s, s, opts)
					minutes := 10
					if process == 1 {
						s.script(failing("patch", statusError(503, 0)))
						minutes = int(outage / time.Minute)
					}
					w.loop(minutes, time.Minute)
					w.kill()
					s.script(nil)
				}
				event := s.only(t)
				assert.Equal(t, series.Ongoing.String(), stateOf(event))
			})
		}
	}
}

// A process restarts because of a fix, after which nothing occurs. What the process before has
// left is not Ongoing for ever.
func TestNothingOccursAfterARestart(t *testing.T) {
	for _, scope := range []Scope{SameInstance, SameController} {
		runBubble(t, string(scope), func(t *testing.T) {
			s := newLister()
			first := startOn(t, s.server, s, Options{Scope: scope, EventTTL: 3 * time.Hour, listLimit: -1})
			first.loop(30, 10*time.Second)
			first.flush(t)
			first.kill()
			second := startOn(t, s.server, s, Options{Scope: scope, EventTTL: 3 * time.Hour})
			time.Sleep(45 * time.Minute) // the TTL is 3 hours, so heartbeats are 90 minutes apart
			synctest.Wait()
			assert.Equal(t, series.Ongoing.String(), stateOf(s.only(t)))
			time.Sleep(time.Hour)
			synctest.Wait()
			if scope == SameController {
				assert.Equal(t, series.Finished.String(), stateOf(s.only(t)))
			} else {
				assert.Zero(t, s.requestsOf("list"), "it emits nothing")
			}
			second.broadcaster.Shutdown()
		})
	}
}

// An admission webhook changes a field of the key, or sets an odd state, from the beginning or from
// the middle on, when somebody also changes what is stored. Every 10 minutes somebody annotates the
// Event, and some answers are lost. There is one Event, and its count is right.
func TestWebhookChangesTheKey(t *testing.T) {
	const hours = 6
	for field, change := range fakeapi.Fields {
		for _, scope := range []Scope{SameInstance, SameController} {
			for _, from := range []time.Duration{0, hours * time.Hour / 2} {
				runBubble(t, fmt.Sprint(field, " ", scope, " from ", from), func(t *testing.T) {
					w := newWorld(t, Options{Scope: scope, listLimit: -1, EventTTL: time.Hour})
					begin := time.Now()
					w.server.api.Admit = func(verb string, event *eventsv1.Event) {
						if time.Since(begin) >= from && (verb == "create" || field == "state") {
							change(event)
						}
					}
					requests := 0
					w.server.api.After(func(context.Context, request) error {
						if requests++; requests%5 == 1 {
							return io.ErrUnexpectedEOF
						}
						return nil
					})
					w.start(t)
					for minute := range hours * 60 {
						for range 6 {
							w.emit(0)
							time.Sleep(10 * time.Second)
						}
						if minute%10 == 7 || minute == 0 || minute == int(from/time.Minute) {
							event := w.server.only(t).DeepCopy()
							metav1.SetMetaDataAnnotation(&event.ObjectMeta, "example.com/edited", fmt.Sprint(minute))
							if minute >= int(from/time.Minute) {
								change(event)
							}
							w.server.put(event)
						}
					}
					w.broadcaster.Shutdown()
					assert.EqualValues(t, hours*360, countOf(w.server.only(t)))
					assert.LessOrEqual(t, requests, 14*hours)
				})
			}
		}
	}
}
