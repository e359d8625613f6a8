package compat

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/eventseries/eventseries/events"
)

func TestSinksRequireClients(t *testing.T) {
	clientset := fake.NewClientset()
	event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
	type sink interface {
		events.EventSink
		events.EventLister
	}
	const both, one = "sink requires clients for events.k8s.io/v1 and core/v1", "no Interface"
	for sink, want := range map[sink]string{
		(*Sink)(nil): both, &Sink{}: both, NewSink(nil): both, &Sink{EventsV1: clientset.EventsV1()}: both, &Sink{CoreV1: clientset.CoreV1()}: both,
		(*CoreSink)(nil): one, &CoreSink{}: one,
	} {
		_, create := sink.Create(t.Context(), event)
		_, patch := sink.Patch(t.Context(), event, []byte("{}"))
		_, update := sink.Update(t.Context(), event)
		_, list := sink.List(t.Context(), "", metav1.ListOptions{})
		for _, err := range []error{create, patch, update, list} {
			require.ErrorContains(t, err, want)
		}
	}
}

// QPS limits requests, and not calls of the sink: a request to the second group takes a token, too.
func TestQPSWhileBothGroupsDeny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientset := fake.NewClientset()
		var mu sync.Mutex
		requests := 0
		clientset.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			requests++
			return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no role"))
		})
		b, err := events.New(NewSink(clientset), events.Options{QPS: 5})
		require.NoError(t, err)
		require.NoError(t, b.StartRecordingToSinkWithContext(t.Context()))
		defer b.Shutdown()
		r := b.NewRecorder(scheme.Scheme, "tester")
		const seconds = 60
		for i := range 20 * seconds {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("ns-", i), Name: "pod"}}
			r.Eventf(pod, nil, corev1.EventTypeWarning, "Failed", "Try", "it fails")
			time.Sleep(time.Second / 20)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		assert.LessOrEqual(t, requests, 5*seconds+2*5+1, "and a burst, and one in flight")
		assert.Greater(t, requests, 5*seconds)
	})
}

// A webhook changes a field of the key. Each process finds the Event of a singleton by the annotation.
func TestWebhookChangesAFieldOfTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset()
		clients.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
			action.(clienttesting.CreateAction).GetObject().(*corev1.Event).Reason = "Changed"
			return false, nil, nil
		})
		for range 3 {
			b := events.NewBroadcaster(NewSink(clients))
			require.NoError(t, b.StartRecordingToSinkWithContext(t.Context()))
			pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}
			b.NewRecorder(nil, "tester").Eventf(pod, nil, "Warning", "Failed", "Try", "it fails")
			b.Shutdown()
			time.Sleep(50 * time.Minute)
		}
		list, err := clients.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
		assert.EqualValues(t, 3, list.Items[0].Count)
	})
}
