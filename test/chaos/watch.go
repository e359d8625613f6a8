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

// watch observes each change of each Event and collects forbidden ones.
type watch struct {
	store cache.Store

	mu        sync.Mutex
	changes   int
	forbidden []string
}

// startWatch watches the Events of a namespace until ctx is done. clients must not use
// a proxy. After an outage of the server, the watch resumes without missing changes.
func startWatch(ctx context.Context, clients kubernetes.Interface, namespace string, goroutines *sync.WaitGroup) *watch {
	w := &watch{}
	var controller cache.Controller
	w.store, controller = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(clients.EventsV1().RESTClient(), "events", namespace, fields.Everything()),
		ObjectType:    &eventsv1.Event{},
		Handler: cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(before, now any) { w.update(before.(*eventsv1.Event), now.(*eventsv1.Event)) },
			DeleteFunc: func(object any) { w.forbid("deleted: %v", object) },
		},
	})
	goroutines.Go(func() { controller.RunWithContext(ctx) })
	return w
}

func (w *watch) update(before, now *eventsv1.Event) {
	w.mu.Lock()
	w.changes++
	w.mu.Unlock()
	if what := regression(before, now); what != "" {
		w.forbid("%s:\n\t%s\n\t%s", what, describe(before), describe(now))
	}
}

func (w *watch) forbid(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forbidden = append(w.forbidden, fmt.Sprintf(format, args...))
}

// regression returns why a change is forbidden, or nothing if it is not.
func regression(before, now *eventsv1.Event) string {
	state := func(event *eventsv1.Event) string { return event.Annotations[series.AnnotationState] }
	finished := series.Finished.String()
	switch {
	case occurrences(now) < occurrences(before):
		return "the count decreased"
	case before.Series != nil && now.Series.LastObservedTime.Before(&before.Series.LastObservedTime):
		return "the time decreased"
	case state(before) == finished && (state(now) != finished || occurrences(now) != occurrences(before)):
		return "a finished series changed"
	default:
		return ""
	}
}

func (w *watch) checkUpToDate(found []eventsv1.Event) error {
	if n := len(w.store.List()); n != len(found) {
		return fmt.Errorf("chaos: the watch has %d Events, the server has %d", n, len(found))
	}
	for i := range found {
		seen, ok, err := w.store.Get(&found[i])
		if err != nil {
			return err
		}
		if !ok || seen.(metav1.Object).GetResourceVersion() != found[i].ResourceVersion {
			return fmt.Errorf("chaos: the watch has not observed the latest %s", found[i].Name)
		}
	}
	return nil
}
