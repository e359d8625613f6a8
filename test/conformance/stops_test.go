package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	eventseriesrecord "github.com/eventseries/eventseries/compat/record"
	"github.com/eventseries/eventseries/events"
)

// ways are the columns of the table in docs/migration.md: how a program stops. The context
// of WithContext ends when the loop does, if the way says so, and a reconciler that is
// running emits once more.
var ways = []struct {
	name string
	make func(context.Context) record.EventBroadcaster
	stop func(record.EventBroadcaster, context.CancelFunc)
}{
	{"client-go, killed", legacyMakers["client-go"], kill},
	{"no `FirstHeartbeat`, killed", func(context.Context) record.EventBroadcaster {
		return eventseriesrecord.NewBroadcaster(eventseriesrecord.WithOptions(func(o *events.Options) { o.FirstHeartbeat = 5 * time.Minute }))
	}, kill},
	{"killed", func(context.Context) record.EventBroadcaster { return eventseriesrecord.NewBroadcaster() }, kill},
	{"`WithContext`, and the process ends a second later", legacyMakers["eventseries"], func(_ record.EventBroadcaster, cancel context.CancelFunc) {
		cancel()
		time.Sleep(time.Second)
	}},
	{"`Shutdown`", func(context.Context) record.EventBroadcaster { return eventseriesrecord.NewBroadcaster() }, func(b record.EventBroadcaster, _ context.CancelFunc) {
		b.Shutdown()
	}},
}

func kill(record.EventBroadcaster, context.CancelFunc) {}

// TestStops measures how many occurrences of a loop the server knows when the program has
// stopped in different ways, and compares that with docs/migration.md.
func TestStops(t *testing.T) {
	var b strings.Builder
	b.WriteString("| warnings |")
	for _, w := range ways {
		fmt.Fprintf(&b, " %s |", w.name)
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", len(ways)+1) + "\n")
	for _, loop := range []struct {
		name  string
		n     int
		every time.Duration
	}{
		{"20, one per second", 20, time.Second},
		{"450, five per second", 450, 200 * time.Millisecond},
		{"1,000, 100 per second", 1000, 10 * time.Millisecond},
		{"60, one per minute", 60, time.Minute},
	} {
		fmt.Fprintf(&b, "| %s |", loop.name)
		for _, w := range ways {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				clientset := fake.NewClientset()
				broadcaster := w.make(ctx)
				defer broadcaster.Shutdown()
				broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
				recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"})
				for range loop.n {
					recorder.Event(pod("a"), "Warning", "Failed", "it failed")
					time.Sleep(loop.every)
					synctest.Wait()
				}
				w.stop(broadcaster, cancel)
				synctest.Wait()
				list, err := clientset.CoreV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				known := 0
				for _, e := range list.Items {
					known += int(max(e.Count, 1))
				}
				fmt.Fprintf(&b, " %d |", known)
			})
		}
		b.WriteString("\n")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "migration.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), b.String())
}
