package events

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

// good is the number of the first pod that a script of bad permits.
const good = 5000

// isShown reports whether the server has an Ongoing Event about a pod that is not stale.
func (w *world) isShown(pod int) bool {
	return slices.ContainsFunc(w.server.list(), func(e *eventsv1.Event) bool {
		s, err := series.FromEvent(e)
		return err == nil && strings.HasPrefix(e.Name, fmt.Sprintf("pod-%d.", pod)) && s.StateAt(time.Now()) == series.Ongoing
	})
}

// droppedFor returns how many occurrences about pods from good on were dropped.
func (w *world) droppedFor() (n int) {
	for _, d := range w.dropped() {
		var pod int
		if _, err := fmt.Sscanf(d.Key.Regarding.Name, "pod-%d", &pod); err == nil && pod >= good {
			n += d.Count
		}
	}
	return n
}

// minutes lets minutes pass, in each of which loops occur.
func (w *world) minutes(n int, loops ...[2]int) {
	for range n {
		for _, loop := range loops {
			for pod := loop[0]; pod < loop[1]; pod++ {
				w.emitAs("Warning", pod)
			}
		}
		time.Sleep(time.Minute)
	}
}

// A recorder starts while the server denies everything in the namespace. When it gets its
// permission, a webhook still denies many objects. What is permitted is written within
// minutes, although it has been denied for long.
func TestPermissionComesLate(t *testing.T) {
	for _, denied := range workload.Some(30, 100) {
		for _, late := range workload.Some(62, 10, 59, 80) { // minutes
			runInBubble(t, fmt.Sprint(denied, " ", late), Options{}, func(t *testing.T, w *world) {
				w.server.script(always(statusError(403, 0)))
				loops := [][2]int{{0, denied}, {good, good + 2}}
				w.minutes(late-3, loops...)
				w.emitAs("Warning", good+10)
				w.minutes(3, loops...)
				w.server.script(bad(403, denied))
				dropped := w.droppedFor()
				w.minutes(7, loops...)
				for _, pod := range []int{good, good + 1} {
					assert.True(t, w.isShown(pod), "loop %d", pod)
				}
				assert.True(t, slices.ContainsFunc(w.server.list(), func(e *eventsv1.Event) bool {
					return strings.HasPrefix(e.Name, fmt.Sprintf("pod-%d.", good+10))
				}))
				w.minutes(24*60-late-7, loops...)
				assert.Equal(t, dropped, w.droppedFor(), "dropped although they are permitted")
				for pod := range denied {
					assert.LessOrEqual(t, len(w.requestsFor(pod)), 300)
				}
			})
		}
	}
}

// A permission is withdrawn for longer than an Event lives, and granted again. The first
// series that passes has the others of the namespace tried.
func TestPermissionReturns(t *testing.T) {
	for _, hours := range workload.Some(2, 5, 24) {
		for _, denied := range workload.Some(30, 0) {
			runInBubble(t, fmt.Sprint(hours, " ", denied), Options{}, func(t *testing.T, w *world) {
				loops := [][2]int{{0, denied}, {good, good + 20}}
				w.server.script(bad(403, denied))
				w.minutes(30, loops...)
				w.server.script(always(statusError(403, 0)))
				w.minutes(hours*60, loops...)
				w.server.script(bad(403, denied))
				first := 0
				for ; first < 50 && !slices.ContainsFunc(pods(good, good+20), w.isShown); first++ {
					w.minutes(1, loops...)
				}
				require.Less(t, first, 50)
				dropped, before := w.droppedFor(), len(w.server.log())
				w.minutes(7, loops...)
				for _, pod := range pods(good, good+20) {
					assert.True(t, w.isShown(pod), "loop %d", pod)
				}
				assert.LessOrEqual(t, len(w.server.log())-before, 4*(20+denied))
				assert.Equal(t, dropped, w.droppedFor())
			})
		}
	}
}

func pods(from, to int) (all []int) {
	for ; from < to; from++ {
		all = append(all, from)
	}
	return all
}

// A namespace does not exist yet, or a webhook rejects what it permits later. The series are
// tried again soon, and an occurrence after the recovery is written.
func TestRefusedForAWhile(t *testing.T) {
	for name, err := range map[string]error{
		"no namespace": apierrors.NewNotFound(corev1.Resource("namespaces"), "ns"),
		"400":          statusError(400, 0),
		"422":          statusError(422, 0),
	} {
		for _, during := range []time.Duration{time.Second, 10 * time.Minute, 3 * time.Hour} {
			runInBubble(t, fmt.Sprint(name, " ", during), Options{}, func(t *testing.T, w *world) {
				w.server.script(always(err))
				begin := time.Now()
				for time.Since(begin) < during {
					w.emitAs("Warning", 0)
					w.emitAs("Warning", 1)
					time.Sleep(min(during, 10*time.Second))
				}
				refused := len(w.server.log())
				assert.LessOrEqual(t, refused, 1+2*(7+int(during/(30*time.Minute))), "with a list")
				w.server.script(nil)
				recovered := time.Now()
				dropped := total(w.broadcaster.Stats().Dropped)
				w.emitAs("Warning", 0) // and nothing more
				for time.Since(recovered) < 32*time.Minute {
					w.emitAs("Warning", 1)
					time.Sleep(10 * time.Second)
					if time.Since(recovered) > min(during+2*time.Minute, 31*time.Minute) {
						require.True(t, w.isShown(1), "after %v", time.Since(recovered))
					}
				}
				time.Sleep(time.Minute)
				assert.True(t, slices.ContainsFunc(w.server.list(), func(e *eventsv1.Event) bool { return strings.HasPrefix(e.Name, "pod-0.") }))
				assert.Equal(t, dropped, total(w.broadcaster.Stats().Dropped))
			})
		}
	}
}

func total[K comparable](counts map[K]uint64) (n uint64) {
	for _, k := range counts {
		n += k
	}
	return n
}

// requested returns the number of requests of a kind with an outcome. An empty string stands for all.
func requested(s Stats, kind, outcome string) (n uint64) {
	for _, r := range s.Requests {
		if (kind == "" || r.Kind == kind) && (outcome == "" || r.Outcome == outcome) {
			n += r.Count
		}
	}
	return n
}
