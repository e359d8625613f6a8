package chaos

import (
	"context"
	"fmt"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/eventseries/eventseries/series"
)

// watch sees each change of each Event, and remembers those that must not be.
type watch struct {
	store cache.Store

	mu      sync.Mutex
	changes int
	wrong   []string
}

// startWatch watches the Events of a namespace until ctx ends. clients must not
// go through a proxy. Where the server was away, it goes on from where it was, so
// that it misses nothing.
func startWatch(ctx context.Context, clients kubernetes.Interface, namespace string, goroutines *sync.WaitGroup) *watch {
	w := &watch{}
	var controller cache.Controller
	w.store, controller = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(clients.EventsV1().RESTClient(), "events", namespace, fields.Everything()),
		ObjectType:    &eventsv1.Event{},
		Handler: cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(before, now any) { w.changed(before.(*eventsv1.Event), now.(*eventsv1.Event)) },
			DeleteFunc: func(gone any) { w.complain(fmt.Sprintf("deleted: %v", gone)) },
		},
	})
	goroutines.Go(func() { controller.RunWithContext(ctx) })
	return w
}

func (w *watch) changed(before, now *eventsv1.Event) {
	w.mu.Lock()
	w.changes++
	w.mu.Unlock()
	if what := regression(before, now); what != "" {
		w.complain(fmt.Sprintf("%s:\n\t%s\n\t%s", what, describe(before), describe(now)))
	}
}

func (w *watch) complain(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, what)
}

// result returns how many changes it has seen, and those that must not be.
func (w *watch) result() (changes int, wrong []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changes, w.wrong
}

// regression says what of a change must not be.
func regression(before, now *eventsv1.Event) string {
	switch {
	case occurrences(now) < occurrences(before):
		return "the count went back"
	case before.Series != nil && now.Series.LastObservedTime.Before(&before.Series.LastObservedTime):
		return "the time went back"
	case before.Annotations[series.AnnotationState] == series.Finished.String() &&
		(now.Annotations[series.AnnotationState] != series.Finished.String() || occurrences(now) != occurrences(before)):
		return "it was finished"
	default:
		return ""
	}
}

// upToDate returns an error as long as it has not seen what is on the server.
func (w *watch) upToDate(found []eventsv1.Event) error {
	if n := len(w.store.List()); n != len(found) {
		return fmt.Errorf("chaos: the watch knows %d Events, the server has %d", n, len(found))
	}
	for i := range found {
		seen, ok, err := w.store.Get(&found[i])
		if err != nil {
			return err
		}
		if !ok || seen.(metav1.Object).GetResourceVersion() != found[i].ResourceVersion {
			return fmt.Errorf("chaos: the watch has not seen %s as it is", found[i].Name)
		}
	}
	return nil
}
