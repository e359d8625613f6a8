package events

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// listerIn is a server that lets one namespace be listed, and answers with err
// about the others.
type listerIn struct {
	*lister
	namespace string
	err       error
	asked     []string
}

func (l *listerIn) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	l.asked = append(l.asked, namespace)
	if namespace != l.namespace {
		return nil, l.err
	}
	return l.lister.List(ctx, namespace, opts)
}

// Roles are granted namespace by namespace, so one that is missing says nothing
// about the next.
func TestListIsForbiddenInOneNamespace(t *testing.T) {
	for name, err := range map[string]error{"forbidden": statusError(403, 0), "nonsense": statusError(400, 0)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &listerIn{lister: &lister{server: newServer()}, namespace: "ns", err: err}
				first := newWorldOn(t, s.server, s, Options{SkipList: true})
				first.start(t)
				first.emit(0)
				first.emit(0)
				first.flush(t)
				first.kill()

				second := newWorldOn(t, s.server, s, Options{Namespaces: []string{"secret", "ns", "kube-system"}})
				second.start(t)
				time.Sleep(tracker.DefaultWindow)
				synctest.Wait()
				assert.Equal(t, []string{"secret", "ns", "kube-system"}, s.asked)
				assert.EqualValues(t, 1, second.broadcaster.Stats().Restored)
				assert.Equal(t, series.Finished.String(), stateOf(s.only(t)), "nobody else would close it")
				assert.Len(t, second.logs.with("list events", "secret"), 1)
				assert.Len(t, second.logs.with("list events", "kube-system"), 1)
			})
		})
	}
}

// A process with recorders of several controllers asks for each of them, but it
// has one set of permissions.
func TestForbiddenListIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := listerThatFails(statusError(403, 0))
		w := newWorldOn(t, s.server, s, Options{})
		w.broadcaster.NewRecorder(testScheme(), "example.com/another")
		w.start(t)
		w.broadcaster.NewRecorder(testScheme(), "example.com/late")
		synctest.Wait()
		assert.EqualValues(t, 3, s.pages.Load())
		assert.Len(t, w.logs.with("May not list events"), 1)
	})
}
