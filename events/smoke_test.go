package events

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestSmoke(t *testing.T) {
	client := fake.NewClientset()
	synctest.Test(t, func(t *testing.T) {
		b := NewBroadcaster(&EventSinkImpl{Interface: client.EventsV1()})
		require.NoError(t, b.StartRecordingToSinkWithContext(t.Context()))
		r := b.NewRecorder(scheme.Scheme, "example.com/x")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
		for i := range 7200 {
			pod.ResourceVersion = fmt.Sprint(i)
			r.Eventf(pod, nil, "Normal", "R", "A", "note %d", i)
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		l, _ := client.EventsV1().Events("n").List(context.Background(), metav1.ListOptions{})
		for _, e := range l.Items {
			t.Log(e.Name, e.Series, e.Annotations)
		}
		t.Logf("%+v", b.Stats())
		b.Shutdown()
		t.Log(len(client.Actions()))
	})
}
