package query_test

import (
	"context"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// clientset has an Event of client-go's tools/events that recurred a minute before noon.
var clientset = fake.NewClientset(&eventsv1.Event{
	ObjectMeta:          metav1.ObjectMeta{Namespace: "shop", Name: "checkout-0.18a1b2c3d4e5f601"},
	EventTime:           metav1.NewMicroTime(noon.Add(-3 * time.Minute)),
	Series:              &eventsv1.EventSeries{Count: 25, LastObservedTime: metav1.NewMicroTime(noon.Add(-time.Minute))},
	ReportingController: "kubelet",
	Reason:              "BackOff",
	Type:                "Warning",
	Regarding:           corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "checkout-0"},
})

func ExampleReader_List() {
	reader := query.NewReader(clientset, query.Options{})
	q := query.Query{
		Objects: []query.Object{{Kind: "Pod", Namespace: "shop", Name: "checkout-0"}},
		States:  []series.State{series.Ongoing},
		At:      noon,
	}
	for item, err := range reader.List(context.Background(), q) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s since %s, %d times, %.1f per second\n", item.Key.Reason, item.First.UTC().Format(time.TimeOnly), item.Count, item.Rate())
		fmt.Printf("%s at noon, and Unknown after %s unless it is updated\n", item.State, item.StaleAt.UTC().Format(time.TimeOnly))
	}
	// Output:
	// BackOff since 11:57:00, 25 times, 0.2 per second
	// Ongoing at noon, and Unknown after 12:45:00 unless it is updated
}
