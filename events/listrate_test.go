package events

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// longList is a server whose list has 100 pages.
type longList struct{ *server }

func (longList) List(_ context.Context, _ string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	page := 0
	_, _ = fmt.Sscan(opts.Continue, &page)
	list := &eventsv1.EventList{Items: make([]eventsv1.Event, defaultListLimit/4)}
	if page < 100 {
		list.Continue = fmt.Sprint(page + 1)
	}
	return list, nil
}

// Lists leave tokens of the rate limiter to writes.
func TestListsDoNotHoldUpWrites(t *testing.T) {
	for _, qps := range []float32{0.1, 5, 50} {
		runBubble(t, fmt.Sprint(qps), func(t *testing.T) {
			s := longList{newServer()}
			w := startOn(t, s.server, s, Options{QPS: qps, Scope: SameController})
			w.list()
			w.broadcaster.lists.add("other")
			synctest.Wait()
			w.emitAs("Warning", 0)
			time.Sleep(time.Duration(float64(3*time.Second) / float64(qps)))
			assert.Len(t, w.requestsFor(0), 1)
		})
	}
}
